"""The search for constructor arguments. More cases are in `tests/transforms/probe/cases/constructors.txt`."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from kernelquarry.pipeline.sandbox.guest.lib.load_source import load_source
from kernelquarry.pipeline.sandbox.guest.probing.constructor_search import Construction, Constructor
from kernelquarry.pipeline.sandbox.guest.probing.guarded_call import Failure
from kernelquarry.pipeline.sandbox.guest.probing.source_hints import Source

NAME = "constructed"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)  # sources are loaded from the working folder
    yield
    sys.modules.pop(NAME, None)


def constructor(signature: str, body: str, before: str = "", limit: int = 10_000) -> Constructor:
    code = f"import torch\nfrom torch import nn\n{textwrap.dedent(before)}\nclass Model(nn.Module):\n"
    code += f"    def __init__({signature}):\n        super().__init__()\n"
    code += textwrap.indent(textwrap.dedent(body), " " * 8)
    loaded = load_source(code, NAME)
    return Constructor(vars(loaded), "Model", Source(code), str(loaded.__file__), limit)


def arguments(made: Constructor) -> list[str]:
    return [found.arguments for found in made.constructions() if isinstance(found, Construction)]


def failures(made: Constructor) -> list[str]:
    return [str(found) for found in made.constructions() if isinstance(found, Failure)]


def test_each_style_gives_distinct_sizes() -> None:
    found = arguments(constructor("self, in_channels, out_channels", "self.a = nn.Linear(in_channels, out_channels)"))
    assert found[:2] == ["[16, 48]", "[32, 32]"]
    assert len(found) == len(set(found)) > 3


def test_a_constructor_without_parameters_gives_one_construction() -> None:
    assert arguments(constructor("self", "pass")) == ["[]"]


def test_defaults_before_a_chosen_parameter_are_explicit() -> None:
    made = constructor("self, a=(1, 2), kernel=min, depth=99", "pass")
    assert arguments(made)[0] == "[(1, 2), min, 2]"


def test_a_failure_leads_to_another_value() -> None:
    body = """
    if not isinstance(what, list):
        raise TypeError("a list is needed")
    if len(what) < 4:
        raise IndexError("four")
    """
    assert arguments(constructor("self, what", body))[0] == "[[16, 32, 32, 32]]"


def test_an_entry_of_a_configuration_is_a_key_of_the_table_it_is_looked_up_in() -> None:
    tables = "LAYERS = {'first': nn.ReLU, 'second': nn.GELU}"
    made = constructor("self, config", "self.act = LAYERS[config.norm_type]()", tables)
    assert "'norm_type': 'first'" in arguments(made)[0]


def test_constructions_are_repeatable_and_in_eval_mode() -> None:
    made = constructor("self, dim", "self.linear = nn.Linear(dim, 2); self.drop = nn.Dropout(0.5)")
    first, second = made.build("[4]"), made.build("[4]")
    assert not first.training and not first.drop.training
    assert torch.equal(first.linear.weight, second.linear.weight)


def test_a_train_method_that_raises_is_not_needed() -> None:
    before = """
    class Stubborn(nn.Module):
        def train(self, mode, more):
            raise AssertionError
    """
    module = constructor("self", "self.inside = Stubborn()", before).build("[]")
    assert not module.training and not module.inside.training


@pytest.mark.parametrize("hidden", ["self.modules = [nn.ReLU()]", "self.state_dict = lambda *args, **kwargs: None"])
def test_a_module_that_hides_a_method_of_modules_is_not_constructed(hidden: str) -> None:
    found = next(constructor("self", hidden).constructions())
    assert isinstance(found, Failure) and "hides a method" in found.message


def test_a_module_above_the_limit_is_not_constructed() -> None:
    body = "self.weight = nn.Parameter(torch.ones(dim, 100))"
    assert failures(constructor("self, dim", body, limit=50))[0].startswith("TooBig: more than 50 elements")
    assert arguments(constructor("self, dim", body, limit=3200))[0] == "[32]"


def test_the_first_of_the_failures_that_got_furthest_is_returned() -> None:
    body = """
    if dim == 32:
        raise ValueError("early")
    raise ValueError(f"late {dim}")
    """
    assert failures(constructor("self, dim", body))[0] == "ValueError: late 16"


def test_the_search_ends() -> None:
    made = constructor("self, a, b, c, d, e", "SEEN.append(a)\nraise ValueError(str(a))", "SEEN = []")
    assert not arguments(made)
    assert 7 <= len(made._namespace["SEEN"]) < 7 * 70


def test_an_entry_class_with_an_inherited_constructor() -> None:
    made = Constructor({"Model": nn.GELU, "nn": nn}, "Model", Source(""), "", 100)
    assert arguments(made)[0] in ("[]", "['none']")
