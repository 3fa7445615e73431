"""Recipes: supervised training, then GRPO with the verifier as the reward, and an evaluation that means something."""
