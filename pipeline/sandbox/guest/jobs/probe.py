"""Guest side of the probe stage: a module's source in, constructor arguments and workloads out."""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from ..lib.load_source import load_source
from ..probing import module_facts, task_checks
from ..probing.behaviour import EVEN, LARGE, digest, told, told_evened
from ..probing.call_search import Caller, search, smaller, variations
from ..probing.call_sites_of_module import Sight, examples, sights
from ..probing.constructor_search import Construction, Constructor
from ..probing.forward import starts
from ..probing.guarded_call import Failure, TooBig, Unfit, attempt, failure_of, seed
from ..probing.guess import Guess, draw
from ..probing.operator_graph import Recorder, graph
from ..probing.operator_graph import warm as warm_graph
from ..probing.parameter_values import (
    FILLED_STYLES,
    INSTANCE_STYLES,
    LAYERS_STYLES,
    LEAN_STYLES,
    PAIR_STYLES,
    PART_STYLES,
    STYLES,
)
from ..probing.parameters import forward_inputs
from ..probing.source_hints import Source

_NAME = "probed"
_LONG_S = 2.0  # of CPU time, after which no other construction is tried; most modules take a fiftieth
# What forward raises where the constructor was not given something, and where it was given a class for a layer.
_LEFT_OUT = r"NoneType|'Model' object has no attribute|(should|must) be (defined|given|set|specified|provided)"
_CLASS = r"must be Tensor, not [A-Z]\w*$|got \([A-Z]\w*, Parameter"
# Where it calls the items of a list that it was given, and where it calls what it was given as another layer than the
# one that it was given.
_LAYERS = r"'(int|str|list)' object is not callable"
_PART = r"(GELU|Linear)\.forward\(\) (takes|got|missing)|'(GELU|Linear)' object is not (iterable|subscriptable)"
_Found: TypeAlias = tuple[Construction, Caller, Guess]
_Constructions: TypeAlias = Iterator[Construction | Failure]


# Needs a size repaired, another constructor and a check read: what the first module does for all that come after it.
_FIRST = '''
import torch
from torch import nn


class Model(nn.Module):
    """Gates what it mixes.

    Args:
        dim: channels.
        act: by name.
    """

    def __init__(self, dim: int, act, groups=4, norm_layer=nn.LayerNorm):
        super().__init__()
        self.conv = nn.Conv2d(dim, 2 * dim, 3, padding=1, groups=groups)
        self.norm = norm_layer(2 * dim)
        self.proj = nn.Linear(2 * dim, dim)
        self.act = act()

    def forward(self, x: torch.Tensor, mask=None):
        b, n, c = x.shape
        side = int(n**0.5)
        assert side * side == n, f"not a square: {n}"
        y = self.conv(x.transpose(1, 2).reshape(b, c, side, side))
        y = self.norm(y.flatten(2).transpose(1, 2))
        if mask is not None:
            y = y * mask.unsqueeze(-1)
        return x + self.act(self.proj(torch.relu(y)))
'''


def warm() -> None:
    """Runs the kernels whose first run is slow, and probes a module, which compiles what is looked for in all."""
    torch.set_num_threads(1)
    with torch.no_grad(), module_facts.Census():
        nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 4), nn.LayerNorm(4))(torch.ones(2, 4, 6, 6))
    warm_graph()
    limits = {"parameters": 10**6, "elements": 10**6, "flops": 10**8, "contractions": 8}
    run({"code": _FIRST, "entry_point": "Model", "limits": limits, "user": "", "name": "Model"}, {})
    Path(str(sys.modules.pop(_NAME).__file__)).unlink()


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Probes the class `request["entry_point"]` of `request["code"]` within `request["limits"]`.

    `request["user"]` is the code of a module that makes one, where it is called `request["name"]`; "" if none is known.

    Replies with `init_args`, `workloads`, `state`, `outputs`, `operators`, `graph`, `behaviour` and `behaviours`,
    or with `reason` (a code of `Reason`) and `evidence`.
    """
    warnings.simplefilter("ignore")
    file = str(Path.cwd() / f"{_NAME}.py")
    try:
        return _probe(request), {}
    except Unfit as unfit:
        return {"reason": unfit.reason, "evidence": unfit.evidence}, {}
    except TooBig as error:
        return {"reason": "too_big", "evidence": str(error)}, {}
    except BaseException as error:
        failure = failure_of(error, file)
        if not failure.line:  # ours
            raise
        return {"reason": "no_workload", "evidence": f"code that is called beside forward: {failure}"}, {}


def _probe(request: dict[str, Any]) -> dict[str, Any]:
    code, entry_point, limits = request["code"], request["entry_point"], request["limits"]
    source, failure = attempt(lambda: Source(code), "")
    if source is None:
        raise Unfit("import_failed", str(failure))
    seed(0)
    loaded, failure = attempt(lambda: load_source(code, _NAME), f"{_NAME}.py")
    if loaded is None:
        raise Unfit("import_failed", str(failure))
    entry = vars(loaded).get(entry_point)
    if not (isinstance(entry, type) and issubclass(entry, nn.Module)):
        raise Unfit("import_failed", f"no class {entry_point} that derives from nn.Module")
    constructor = Constructor(vars(loaded), entry_point, source, str(loaded.__file__), limits["parameters"])
    finder = _Finder(constructor, source, entry_point, limits)
    try:
        construction, caller, guess = finder.find()
    except Unfit as unfit:
        used = None
        if unfit.reason in ("no_workload", "no_constructor_arguments"):
            told = request["name"], entry_point, limits["parameters"], vars(loaded)
            used = finder.like_a_user(examples(code, *told))
            if used is None and request["user"]:
                used = finder.like_a_user(sights(request["user"], *told))
        if used is None:
            raise
        construction, caller, guess = used
    others = list(_others(caller, guess, finder.limits))
    for other in others:
        task_checks.check_variation(caller, other)
    found = {"init_args": construction.arguments, **_described(caller, [guess, *others])}
    return {**found, **_behaviours(constructor, construction, guess)}  # last: it changes the module


class _Finder:
    """Finds a construction and a call of it."""

    def __init__(self, constructor: Constructor, source: Source, entry_point: str, limits: dict[str, int]) -> None:
        self._constructor, self._source, self._entry_point = constructor, source, entry_point
        self.limits = limits
        self._end = time.process_time() + _LONG_S
        self._shallowest: tuple[int, _Found] | None = None  # of the too deep ones, and how deep it is

    def find(self) -> _Found:
        """The first construction for which a call is found: if need be one with fewer and narrower layers, or with all
        that may be left out.

        Raises:
            Unfit: there is none; the evidence is how the first one failed.
        """
        try:
            return self._first(self._constructor.constructions(STYLES))
        except TooBig as error:
            unfit = Unfit("too_big", str(error))
        except Unfit as error:
            unfit = error
        for others in self._others(unfit):
            try:
                return self._first(others)
            except (TooBig, Unfit):
                if time.process_time() > self._end:
                    break
        if (repeating := self._repeating()) is not None:
            return repeating
        raise unfit

    def _repeating(self) -> _Found | None:
        """The shallowest of those that are too deep, if it launches few kernels, again and again."""
        if self._shallowest is None:
            return None
        _, (found, caller, guess) = self._shallowest
        deeper = self.limits | {"contractions": self.limits["layers"]}
        try:
            guess = _accept(caller, deeper, guess)
        except (TooBig, Unfit):
            return None
        if _costs(caller, guess).kernels > self.limits["kernels"]:
            return None
        self.limits = deeper
        return found, caller, guess

    def _others(self, unfit: Unfit) -> Iterator[_Constructions]:
        """The constructions to try after those that failed so."""
        if unfit.reason == "too_big":
            yield self._constructor.constructions(LEAN_STYLES)
            yield self._constructor.lean()
        elif unfit.reason == "no_workload":
            pairs = self._source.unpacks_a_part(self._entry_point)
            parts = PAIR_STYLES + PART_STYLES if pairs else PART_STYLES + PAIR_STYLES
            told = {_LEFT_OUT: FILLED_STYLES, _CLASS: INSTANCE_STYLES, _LAYERS: LAYERS_STYLES, _PART: parts}
            yield from (self._constructor.constructions(told[p]) for p in told if re.search(p, unfit.evidence))

    def _first(self, constructions: _Constructions) -> _Found:
        """Raises: TooBig: other inputs would change nothing about that; Unfit: for any other reason."""
        not_constructed: Failure | None = None
        too_big = ""
        not_run: tuple[str, Failure] | None = None
        refused: Unfit | None = None
        for found in constructions:
            if isinstance(found, Failure):
                too_big = too_big or (found.message if found.kind == "TooBig" else "")
                not_constructed = not_constructed or found
                continue
            try:
                _check_repeats(self._constructor, found)
                caller, guess = self._call(found)
            except TooBig as error:
                if error.call is not None and (not self._shallowest or error.depth < self._shallowest[0]):
                    self._shallowest = error.depth, (found, *error.call)
                raise
            except Unfit as unfit:
                if refused is not None:
                    break
                refused = unfit
                continue
            if isinstance(guess, Guess):
                return found, caller, guess
            not_run = not_run or (found.arguments, guess)
            if time.process_time() > self._end:
                break
        if refused is not None:
            raise refused
        if too_big:
            raise TooBig(too_big)
        if not_run is not None:
            raise Unfit("no_workload", f"constructed with {not_run[0]}: {not_run[1]}")
        raise Unfit("no_constructor_arguments", str(not_constructed))

    def _call(self, found: Construction, sight: Sight | None = None) -> tuple[Caller, Guess | Failure]:
        """Raises: Unfit: calls run, and are no task; TooBig."""
        usage = partial(self._source.usage, self._entry_point, "forward")
        inputs = forward_inputs(found.module, usage, self._source.prose(self._entry_point))
        optional = {item.name: i for i, item in enumerate(inputs) if not item.required and item.default is None}
        caller = Caller(found.module, self._constructor.file)
        begin = [guess for guess in (sight.guess(inputs) if sight else None,) if guess]
        begin += starts(found.module, inputs, found.values)
        return caller, search(caller, begin, optional, partial(_accept, caller, self.limits))

    def like_a_user(self, made: Sequence[Sight]) -> _Found | None:
        """The first that can be constructed and called as others do; None if there is none."""
        for sight in made if time.process_time() < self._end else ():
            found = self._constructor.construct(sight.made)
            if isinstance(found, Failure):
                continue
            try:
                _check_repeats(self._constructor, found)
                caller, guess = self._call(found, sight)
            except (TooBig, Unfit):
                continue
            if isinstance(guess, Guess):
                return found, caller, guess
        return None


def _check_repeats(constructor: Constructor, construction: Construction) -> None:
    """Raises `Unfit` if the same construction from the same seed gives another state, or nothing."""
    with _filled_memory():
        again, failure = attempt(lambda: constructor.build(construction.arguments), constructor.file)
    if again is None:
        raise Unfit("no_constructor_arguments", f"is constructed only once: {failure}")
    task_checks.check_state(construction.module, again)


@contextmanager
def _filled_memory() -> Iterator[None]:
    """Memory that torch hands out uninitialised is filled with NaN inside."""
    torch._C._set_deterministic_algorithms(True, warn_only=True)  # the public function imports Inductor, 1 s
    try:
        yield
    finally:
        torch._C._set_deterministic_algorithms(False)


def _accept(caller: Caller, limits: dict[str, int], guess: Guess) -> Guess:
    """The guess, or a smaller one that is within the limits and runs.

    Raises:
        Unfit: none is within the limits, or it is no task.
        TooBig: there are too many contractions, also on less, so that it takes another construction.
    """
    # The other workloads may be larger.
    limits = limits | {name: limits[name] // 2 for name in ("elements", "flops")}
    costs = _costs(caller, guess)
    costly = _excess(costs, limits)
    for candidate in smaller(guess) if costly else ():
        if caller.call(candidate)[1] is None:
            costs = _costs(caller, candidate)
            if not _excess(costs, limits):
                guess, costly = candidate, ""
                break
    if costly and costs.contractions > limits["contractions"]:
        raise TooBig(costly, costs.contractions, (caller, guess))
    if costly:
        raise Unfit("too_big", costly)
    task_checks.check(caller, guess)
    return guess


def _others(caller: Caller, guess: Guess, limits: dict[str, int]) -> Iterator[Guess]:
    """The same call at other sizes, made smaller where it would be over the limits."""
    seen = [guess.specs()]
    for other in variations(caller, guess):
        for candidate in (other, *smaller(other)):
            if candidate.specs() in seen or not caller.runs(candidate):
                continue
            if not _excess(_costs(caller, candidate), limits):
                seen.append(candidate.specs())
                yield candidate
                break


def _costs(caller: Caller, guess: Guess) -> module_facts.Census:
    inputs = draw(guess.specs(), 0)
    with module_facts.Census() as census:
        caller.call_with(guess, inputs)
    return census


def _excess(census: module_facts.Census, limits: dict[str, int]) -> str:
    """What is over the limits in one call; "" if nothing is."""
    if census.contractions > limits["contractions"]:
        return f"one forward has {census.contractions} convolutions and matrix products"
    if census.elements <= limits["elements"] and census.flops <= limits["flops"]:
        return ""
    return f"one forward writes {census.elements} elements and takes {census.flops} flops"


def _described(caller: Caller, guesses: list[Guess]) -> dict[str, Any]:
    """The parts of the reply that come from the module and its workloads."""
    inputs = draw(guesses[0].specs(), 0)
    with module_facts.Census() as census:
        tree, found = task_checks.results(caller, guesses[0], inputs)
    return {
        "workloads": [_workload(guess) for guess in guesses],
        "state": module_facts.state_specs(caller.module),
        "outputs": module_facts.outputs(tree, found),
        "operators": sorted(census.operators),
        "graph": _graph(caller, guesses[0]),
    }


def _behaviours(constructor: Constructor, construction: Construction, guess: Guess) -> dict[str, Any]:
    """Digests of what the module computes: of all that it does as it is, and of each thing it does in either size."""
    start = time.process_time()
    as_it_is = told(construction.module, guess, constructor.file)
    quick = time.process_time() - start < _LONG_S
    even = constructor.evened(construction, EVEN, LARGE) if quick else None
    others = told_evened(even, EVEN, guess, constructor.file) if even is not None else []
    single = {digest([text]) for text in (*as_it_is, *others)} - {""}
    return {"behaviour": digest(as_it_is), "behaviours": sorted(single)}


def _graph(caller: Caller, guess: Guess) -> list[Any]:
    """Of one call; empty if it has no graph to speak of."""
    inputs = draw(guess.specs(), 0)
    module = caller.module
    with Recorder(input=inputs, parameter=[*module.parameters()], buffer=[*module.buffers()]) as recorder:
        found, failure = attempt(lambda: task_checks.results(caller, guess, inputs)[1], caller.file)
    return graph(recorder, found) if found is not None and failure is None else []


def _workload(guess: Guess) -> dict[str, Any]:
    tensors = [
        {"name": s.name, "shape": list(s.shape), "dtype": s.dtype, "low": s.low, "high": s.high} for s in guess.specs()
    ]
    return {"tensors": tensors, "args": guess.tree()}
