"""What a module does in a call that a trace must not see, or must not leave behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch._higher_order_ops import effects


@contextlib.contextmanager
def attributes_kept(module: nn.Module) -> Iterator[None]:
    """What a call keeps in plain attributes, lists and dicts, as a table for the sizes that it met, does not
    outlast the trace: it would be of symbols and fake tensors, and another trace would find it."""
    holders = [holder for child in module.modules() for holder in (vars(child), *vars(child).values())]
    before = [(holder, holder.copy()) for holder in holders if type(holder) in (dict, list)]
    try:
        yield
    finally:
        for holder, content in before:
            holder.clear()
            (holder.update if isinstance(holder, dict) else holder.extend)(content)


@contextlib.contextmanager
def untold_errors() -> Iterator[None]:
    """Lets what raises for a singular matrix be traced, as other assertions of values: as a side effect it would need
    a token, which only AOTAutograd gives."""
    has_effects = effects.has_effects

    def others(op: Any, *args: Any) -> bool:
        return op is not torch.ops.aten._linalg_check_errors.default and has_effects(op, *args)

    with mock.patch.object(effects, "has_effects", others):
        yield


@contextlib.contextmanager
def no_inference_mode() -> Iterator[None]:
    """A module may ask for it, and it takes no fakes; a trace without gradients needs none."""
    with mock.patch.multiple(torch.inference_mode, __enter__=lambda self: None, __exit__=lambda self, *raised: None):
        yield
