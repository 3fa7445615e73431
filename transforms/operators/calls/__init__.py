"""How each call of PyTorch is written: `table.py` has the table, the other files its handlers by kind."""

from . import axes, compositions, elements, images, places, products, views
from .table import RENAMED, TABLE, Given, Handler, NotWritten, attribute, parameters_of

__all__ = ["RENAMED", "TABLE", "Given", "Handler", "NotWritten", "attribute", "parameters_of"]
_KINDS = (axes, compositions, elements, images, places, products, views)  # importing them fills the table
