"""Guest side of the probe stage: a module's source in, constructor arguments and workloads out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .load import load_source
from .probing import checks, describe
from .probing.constructor import Construction, Constructor
from .probing.guess import Guess, draw
from .probing.source import Source
from .probing.trial import Failure, TooBig, Unfit, attempt, seed
from .probing.workloads import Caller, forward_parameters, search, variations

_NAME = "probed"


def warm() -> None:
    """Imports what mined sources import, and runs the kernels whose first run is slow."""
    import einops.layers.torch  # noqa: F401

    torch.set_num_threads(1)
    with torch.no_grad(), describe.Census():
        nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 4), nn.LayerNorm(4))(torch.ones(2, 4, 6, 6))


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Probes the class `request["entry_point"]` of `request["code"]` within `request["limits"]`.

    Replies with `init_args`, `workloads`, `state`, `outputs` and `operators`, or with `reason` (a code of
    `Reason`) and `evidence`.
    """
    warnings.simplefilter("ignore")
    try:
        return _probe(request["code"], request["entry_point"], request["limits"]), {}
    except Unfit as unfit:
        return {"reason": unfit.reason, "evidence": unfit.evidence}, {}
    except TooBig as error:
        return {"reason": "too_big", "evidence": str(error)}, {}


def _probe(code: str, entry_point: str, limits: dict[str, int]) -> dict[str, Any]:
    source, failure = attempt(lambda: Source(code), "")
    if source is None:
        raise Unfit("import_failed", str(failure))
    seed(0)
    loaded, failure = attempt(lambda: load_source(code, _NAME), f"{_NAME}.py")
    if loaded is None:
        raise Unfit("import_failed", str(failure))
    constructor = Constructor(vars(loaded), entry_point, source, str(loaded.__file__), limits["parameters"])
    construction, caller, guess = _find(constructor, source, entry_point)
    with _filled_memory():
        checks.check_state(construction.module, constructor.build(construction.arguments))
    checks.check(caller, guess)
    guesses = [guess, *_finite_ones(caller, variations(caller, guess))]
    return {"init_args": construction.arguments, **_described(caller, guesses, limits)}


def _find(constructor: Constructor, source: Source, entry_point: str) -> tuple[Construction, Caller, Guess]:
    """The first construction for which a call is found.

    Raises:
        Unfit: there is none; the evidence is how the first one failed.
    """
    not_constructed: Failure | None = None
    too_big = ""
    not_run: tuple[str, Failure] | None = None
    for found in constructor.constructions():
        if isinstance(found, Failure):
            too_big = too_big or (found.message if found.kind == "TooBig" else "")
            not_constructed = not_constructed or found
            continue
        parameters = forward_parameters(found.module, lambda name: source.usage(entry_point, "forward", name))
        caller = Caller(found.module, constructor.file)
        guess = search(caller, parameters)
        if isinstance(guess, Guess):
            return found, caller, guess
        not_run = not_run or (found.arguments, guess)
    if too_big:
        raise Unfit("too_big", too_big)
    if not_run is not None:
        raise Unfit("no_workload", f"constructed with {not_run[0]}: {not_run[1]}")
    raise Unfit("no_constructor_arguments", str(not_constructed))


@contextmanager
def _filled_memory() -> Iterator[None]:
    """Memory that torch hands out uninitialised is filled with NaN inside."""
    torch._C._set_deterministic_algorithms(True, warn_only=True)  # the public function imports Inductor, 1 s
    try:
        yield
    finally:
        torch._C._set_deterministic_algorithms(False)


def _finite_ones(caller: Caller, guesses: list[Guess]) -> list[Guess]:
    for guess in guesses:
        checks.check_variation(caller, guess)
    return guesses


def _described(caller: Caller, guesses: list[Guess], limits: dict[str, int]) -> dict[str, Any]:
    """The parts of the reply that come from the module and its workloads."""
    operators: set[str] = set()
    for guess in guesses:
        census = describe.Census()
        inputs = draw(guess.specs(), 0)
        with census:
            tree, found = checks.results(caller, guess, inputs)
        if census.elements > limits["elements"] or census.flops > limits["flops"]:
            if guess is guesses[0]:
                raise Unfit("too_big", f"one forward writes {census.elements} elements and takes {census.flops} flops")
            guesses = [g for g in guesses if g is not guess]
            continue
        if guess is guesses[0]:
            outputs = describe.outputs(tree, found)
        operators |= census.operators
    return {
        "workloads": [_workload(guess) for guess in guesses],
        "state": describe.state_specs(caller.module),
        "outputs": outputs,
        "operators": sorted(operators),
    }


def _workload(guess: Guess) -> dict[str, Any]:
    tensors = [
        {"name": s.name, "shape": list(s.shape), "dtype": s.dtype, "low": s.low, "high": s.high} for s in guess.specs()
    ]
    return {"tensors": tensors, "args": guess.tree()}
