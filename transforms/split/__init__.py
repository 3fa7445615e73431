"""Split: each cluster goes to train, validation or test as a whole."""

from .split import Shares, split

__all__ = ["Shares", "split"]
