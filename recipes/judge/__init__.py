"""Judging answers: sandboxes side by side, the verdict on an answer, and the reward made of it."""
