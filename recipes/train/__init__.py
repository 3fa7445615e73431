"""Training: data, SFT, GRPO, rollouts and their run directory."""
