"""How each call of PyTorch is written: `table.py` has the table, the other files its handlers by kind."""

from . import axes, compositions, elements, images, places, products
from .table import RENAMED, TABLE, Given, Handler, NotWritten, parameters_of
from .views import is_view

__all__ = ["RENAMED", "TABLE", "Given", "Handler", "NotWritten", "is_view", "parameters_of"]
_KINDS = (axes, compositions, elements, images, places, products)  # importing them fills the table
