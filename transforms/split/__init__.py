"""Split: assign whole clusters to train, validation or test. Runs and the dataset's writer import it."""

from .assign_split import SPLITS, Shares, split, with_split

__all__ = ["SPLITS", "Shares", "split", "with_split"]
