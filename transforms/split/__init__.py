"""Split: assign whole clusters to train, validation or test. Imported by `backward`, `variants` and `recipes.train`."""

from .assign_split import SPLITS, Shares, split, with_split

__all__ = ["SPLITS", "Shares", "split", "with_split"]
