"""Split: each cluster goes to train, validation or test as a whole."""

from .split import SPLITS, Shares, split

__all__ = ["SPLITS", "Shares", "split"]
