"""Write: the rows as parquet shards whose names and bytes follow from the rows alone."""

from .write import FOLDERS, write_rows

__all__ = ["FOLDERS", "write_rows"]
