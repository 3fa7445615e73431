"""The base class of our dispatch modes."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """A dispatch mode that is not exempt from compilation by torch.

    torch imports its compiler to exempt a mode, which takes a second of each warm process, and guests compile nothing
    within a mode.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
