"""Modules whose arguments are found by observing docstring examples or another module that uses them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from factories import make_module
from probe_cases import HEADER, describe

from kernelquarry.pipeline.sandbox import Sandbox, SandboxSettings
from kernelquarry.pipeline.schema.outcome import Dropped, Kept
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.transforms.probe import probe

GATE = """
class {name}(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.scale = {{"small": 0.5, "large": 2.0}}[table["which"].lower()] * len(table["sizes"])

    def forward(self, pair, limits):
        if len(pair) != 2 or pair[0].dim() != 5 or len(limits) != 3 or limits[0] > limits[1]:
            raise ValueError("no")
        return self.scale * pair[0].clamp(limits[0], limits[1]) + pair[1][:, :, None, None, None]
"""
USER = """
class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.enter = nn.Conv2d(3, channels, 3)
        self.gate = Gate({"which": "large", "sizes": (1, 2, 3)})

    def forward(self, image):
        x = self.enter(image)
        return self.gate([x.unsqueeze(2), x.mean((2, 3))], (1, 2, 3)).sum()
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(SandboxSettings(workers=1)) as sandbox:
        yield sandbox


def test_arguments_from_a_user(sandbox: Sandbox) -> None:
    module = replace(make_module(HEADER + GATE.format(name="Model")), name="Gate")
    alone = probe(module, sandbox)
    assert isinstance(alone, Dropped) and alone.reason is Reason.NO_CONSTRUCTOR_ARGUMENTS, alone
    outcome = probe(replace(module, user=HEADER + GATE.format(name="Gate") + USER), sandbox)
    assert isinstance(outcome, Kept), outcome
    table, *call = describe(outcome.record).split("; ")
    assert table == "[{'which': 'large', 'sizes': (1, 2, 3)}]"
    assert call[0].startswith("[pair0: float ") and call[1].count(",") == 2, call
    assert outcome.record.module.user == ""


EXAMPLE = '''
    """A gate.

    >>> from somewhere import Gate
    >>> gate = Gate({"which": "large",
    ...              "sizes": (1, 2, 3)})
    >>> gate([torch.ones(2, 3, 1, 4, 5), torch.ones(2, 3)], (1, 2, 3)).shape
    torch.Size([2, 3, 1, 4, 5])
    """
'''


@pytest.mark.parametrize(("instead", "kept"), [("large", True), ("huge", False)])
def test_arguments_from_a_docstring(instead: str, kept: bool, sandbox: Sandbox) -> None:
    line, _, body = GATE.format(name="Model").partition(":\n")
    module = make_module(HEADER + f"{line}:{EXAMPLE.replace('large', instead)}{body}")
    outcome = probe(replace(module, name="Gate"), sandbox)
    assert isinstance(outcome, Kept) is kept, outcome
    if isinstance(outcome, Kept):
        table, call, *_ = describe(outcome.record).split("; ")
        assert table == "[{'which': 'large', 'sizes': (1, 2, 3)}]"
        assert call.startswith("[pair0: float "), call
    else:
        assert isinstance(outcome, Dropped) and outcome.reason is Reason.NO_CONSTRUCTOR_ARGUMENTS


@pytest.mark.parametrize(
    "user",
    [
        "raise ValueError",
        "class Model: pass",
        USER,  # without the class that it makes
        GATE.format(name="Gate") + USER.replace("large", "huge"),
        GATE.format(name="Gate") + "class Model(nn.Module):\n    def forward(self):\n        return self",
    ],
)
def test_a_user_without_a_usable_call(user: str, sandbox: Sandbox) -> None:
    module = replace(make_module(HEADER + GATE.format(name="Model")), name="Gate")
    assert probe(replace(module, user=HEADER + user), sandbox) == probe(module, sandbox)
