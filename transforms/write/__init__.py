"""Write: the rows as parquet shards whose names and bytes follow from the rows alone."""

from .write import write_rows

__all__ = ["write_rows"]
