"""Definitions in place of imports of other packages, so that a dataset row needs torch alone.

The miner reads the other files here as sources, which it adds to every tree, and never imports them. A file defines
layers and helpers of one package, under their names there and with the same results in evaluation. Names of the package
that it does not define stay missing.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

FOLDER = "<stand-ins>"  # of their paths in a tree, which no file of a tree has

# Modules that may be imported -> the file that defines their names. The first that matches counts.
_FILES = tuple(
    (re.compile(rf"(?:{modules})(?:\.\w+)*"), name)
    for modules, name in (
        (r"detectron2\.(?:layers|modeling)|fvcore\.nn", "detectron2"),
        (r"lightning|pytorch_lightning", "lightning"),
        (r"mmcv|mmengine|mmcls|mmdet|mmpose|mmpretrain|mmseg", "mmcv"),
        (r"timm\.layers|timm\.models\.layers", "timm_layers"),
        (r"timm\.models\.vision_transformer", "timm_vision_transformer"),
        (r"torch_geometric|torch_sparse", "torch_geometric"),
        (r"torch_scatter", "torch_scatter"),
        (r"torchvision\.(?:ops|models\._utils|utils)", "torchvision"),
        (r"transformers", "transformers"),
    )
)


@cache
def sources() -> dict[str, bytes]:
    """Path -> source of each file."""
    names = dict.fromkeys(name for _, name in _FILES)
    return {f"{FOLDER}/{name}.py": files(__package__).joinpath(f"{name}.py").read_bytes() for name in names}


@cache
def stand_in(module: str) -> str | None:
    """The dotted name of the file that stands for a module of another package; None if there is none."""
    return next((f"{FOLDER}.{name}" for pattern, name in _FILES if pattern.fullmatch(module)), None)
