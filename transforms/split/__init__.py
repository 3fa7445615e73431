"""Split: each cluster goes to train, validation or test as a whole."""

from .assign_split import SPLITS, Shares, split, with_split

__all__ = ["SPLITS", "Shares", "split", "with_split"]
