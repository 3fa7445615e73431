"""Guest side of the probe stage: find constructor arguments and workloads for the source of a module."""

from __future__ import annotations

import importlib
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.jobs.probe import ProbeRequest

from ..lib.load_source import load_source
from ..probing import module_facts, task_checks
from ..probing.call_search import MAX_CALLS, MAX_CALLS_AGAIN, Caller, search, smaller, variations
from ..probing.call_shapes import CallShapes, with_further_shapes
from ..probing.constructor_search import Construction, Constructor
from ..probing.first_guesses import first_guesses
from ..probing.guarded_call import Failure, TooBig, Unfit, attempt, failure_of, seed
from ..probing.guess import MAX_ELEMENTS, Guess, draw
from ..probing.observed_calls import ObservedCall, calls_in_docstrings, calls_in_user, calls_with_own_inputs
from ..probing.parameter_values import (
    FILLED_STYLES,
    INSTANCE_STYLES,
    LAYERS_STYLES,
    PAIR_STYLES,
    PART_STYLES,
    SMALL_STYLES,
    STYLES,
)
from ..probing.parameters import forward_inputs
from ..probing.source_hints import Source
from ..similarity import behaviour_digest, operator_graph
from ..similarity.behaviour_digest import EVEN, LARGE, digest, evened_output_texts, output_texts

_NAME = "probed"
_LONG_S = 1.2  # of CPU time, after which no other construction is tried; most modules take a thirtieth
_DIGEST_S = 2.0  # of CPU time for the digests at one size, after which those at another size are left out
_PART = r"(GELU|Linear)\.forward\(\) (takes|got|missing)|'(GELU|Linear)' object is not (iterable|subscriptable)"
# (failure of forward, styles of constructor arguments that may avoid it)
_STYLES_BY_FAILURE = (
    # An optional argument of the constructor is needed.
    (
        r"NoneType|'Model' object has no attribute|(?i:should|must) be (defined|given|set|specified|provided)",
        FILLED_STYLES,
    ),
    (r"must be Tensor, not [A-Z]\w*$|got \([A-Z]\w*, Parameter", INSTANCE_STYLES),  # a class is called like a layer
    # The items of a list are called.
    (r"'(int|str|list)' object is not callable|unpack non-iterable int", LAYERS_STYLES),
)
_Found: TypeAlias = tuple[Construction, Caller, Guess]
_State: TypeAlias = dict[str, Tensor]

# `warm` probes this module: it needs a size repaired, a second construction, and a check explained.
_WARM_UP = '''
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
    """Run the kernels whose first run is slow, and probe one module, so that all patterns are compiled."""
    torch.set_num_threads(1)
    # PyTorch's Python operators import them in their first call, which takes a guest more than half a second.
    importlib.import_module("torch._dynamo")
    importlib.import_module("torch.fx.experimental.symbolic_shapes")
    with torch.no_grad(), module_facts.Census():
        nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 4), nn.LayerNorm(4))(torch.ones(2, 4, 6, 6))
    behaviour_digest.warm()
    limits = {"parameters": 10**6, "elements": 10**6, "flops": 10**8, "contractions": 8, "layers": 8, "kernels": 8}
    run(ProbeRequest(_WARM_UP, "Model", limits, name="Model"), {})
    Path(str(sys.modules.pop(_NAME).__file__)).unlink()


def run(request: ProbeRequest, tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Probe a class within the limits.

    The reply has `init_args`, `workloads`, `state`, `outputs`, `operators`, `graph`, `behaviour` and `behaviours`, or
    `reason` (a code of `Reason`) and `evidence`.
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
        if not failure.line:  # raised by our code
            raise
        return {"reason": "no_workload", "evidence": f"code that is called beside forward: {failure}"}, {}


def _probe(request: ProbeRequest) -> dict[str, Any]:
    code, entry_point, limits = request.code, request.entry_point, request.limits
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
        construction, caller, guess = _own_call(finder, request, vars(loaded)) if request.own_inputs else finder.find()
    except Unfit as unfit:
        found = None
        if unfit.reason in ("no_workload", "no_constructor_arguments") and not request.own_inputs:
            names = request.name, entry_point, limits["parameters"], vars(loaded)
            found = finder.find_observed(calls_in_docstrings(code, *names))
            if found is None and request.user:
                found = finder.find_observed(calls_in_user(request.user, *names))
        if found is None:
            raise
        construction, caller, guess = found
    guesses = [guess, *_other_sizes(caller, guess, finder.limits)]
    reply = {"init_args": construction.arguments, **_describe(caller, guesses)}
    return {**reply, **_behaviours(constructor, construction, guess)}  # last: it changes the module's state


def _own_call(finder: _Finder, request: ProbeRequest, namespace: dict[str, Any]) -> _Found:
    """The call with the inputs that the source itself makes. Raises: Unfit: it does not run within the limits."""
    limit = request.limits["parameters"]
    found = finder.find_observed(calls_with_own_inputs(request.own_inputs, request.entry_point, limit, namespace))
    if found is None:
        raise Unfit("no_workload", "the call with its own inputs does not run")
    return found


class _Finder:
    """Finds a construction of the module and a call of it."""

    def __init__(self, constructor: Constructor, source: Source, entry_point: str, limits: dict[str, int]) -> None:
        self._constructor, self._source, self._entry_point = constructor, source, entry_point
        self.limits = limits
        self._end = time.process_time() + _LONG_S
        self._max_calls = MAX_CALLS
        self._shallowest: tuple[int, _Found, _State] | None = None  # (contractions, found, state) with too many

    def find(self) -> _Found:
        """The first construction for which a call is found.

        Raises:
            Unfit: no construction has a call. The evidence is the first failure.
        """
        try:
            return self._first(self._constructor.constructions(STYLES))
        except TooBig as error:
            unfit = Unfit("too_big", str(error))
        except Unfit as error:
            unfit = error
        for constructions in self._fallbacks(unfit):
            if time.process_time() > self._end:
                break
            with suppress(TooBig, Unfit):
                return self._first(constructions)
        if (found := self._repeating()) is not None:
            return found
        raise unfit

    def _fallbacks(self, unfit: Unfit) -> Iterator[Iterator[Construction | Failure]]:
        """Further constructions, chosen by the failure."""
        if unfit.reason == "too_big":
            yield self._constructor.constructions(SMALL_STYLES)
            yield self._constructor.shrunk()
        elif unfit.reason == "no_workload":
            unpacks = self._source.unpacks_part(self._entry_point)
            parts = PAIR_STYLES + PART_STYLES if unpacks else PART_STYLES + PAIR_STYLES
            for pattern, styles in (*_STYLES_BY_FAILURE, (_PART, parts)):
                if re.search(pattern, unfit.evidence):
                    yield self._constructor.constructions(styles)

    def _repeating(self) -> _Found | None:
        """The shallowest of the too deep constructions, if it repeats a small number of distinct kernels."""
        if self._shallowest is None:
            return None
        _, (construction, caller, guess), state = self._shallowest
        deeper = self.limits | {"contractions": self.limits["layers"]}
        try:
            guess = _accept(caller, deeper, guess)
            if _measured(caller, guess, deeper)[0].kernels > self.limits["kernels"]:
                return None
            _check_repeats(self._constructor, construction, state)
        except (TooBig, Unfit):
            return None
        self.limits = deeper
        return construction, caller, guess

    def _first(self, constructions: Iterable[Construction | Failure]) -> _Found:
        """The first construction with a call.

        Raises:
            TooBig: a construction is too deep on any input, or none is small enough.
            Unfit: there is none for another reason.
        """
        failures: dict[str, Unfit | TooBig] = {}  # kind -> the first failure of the kind
        for construction in constructions:
            if isinstance(construction, Failure):
                if construction.kind == TooBig.__name__:
                    failures.setdefault("too_big", TooBig(construction.message))
                failures.setdefault("not_constructed", Unfit("no_constructor_arguments", str(construction)))
                continue
            try:
                state = task_checks.state_copy(construction.module)
                caller, guess = self._call(construction)
                if isinstance(guess, Guess):
                    _check_repeats(self._constructor, construction, state)
                    return construction, caller, guess
            except TooBig as error:
                if error.call is not None and (not self._shallowest or error.depth < self._shallowest[0]):
                    self._shallowest = error.depth, (construction, *error.call), state
                raise
            except Unfit as unfit:
                if "rejected" in failures or time.process_time() > self._end:
                    failures.setdefault("rejected", unfit)
                    break
                failures["rejected"] = unfit
                continue
            self._max_calls = MAX_CALLS_AGAIN
            evidence = f"constructed with {construction.arguments}: {guess}"
            failures.setdefault("not_run", Unfit("no_workload", evidence))
            if time.process_time() > self._end:
                break
        kinds = [kind for kind in ("rejected", "too_big", "not_run", "not_constructed") if kind in failures]
        raise failures[kinds[0]] if kinds else Unfit("no_constructor_arguments", "None")

    def _call(self, construction: Construction, observed: ObservedCall | None = None) -> tuple[Caller, Guess | Failure]:
        """Search for a call of the module, first with the observed arguments.

        Raises:
            Unfit: calls run, but none is a task.
            TooBig: all calls are too large.
        """
        usage = partial(self._source.usage, self._entry_point, "forward")
        inputs = forward_inputs(construction.module, usage, self._source.prose(self._entry_point))
        optional = {item.name: i for i, item in enumerate(inputs) if not item.required and item.default is None}
        caller = Caller(construction.module, self._constructor.file)
        starts: Iterable[Guess] = [guess for guess in (observed.guess(inputs) if observed else None,) if guess]
        starts = chain(starts, first_guesses(construction.module, inputs, construction.values))
        return caller, search(caller, starts, optional, partial(_accept, caller, self.limits), self._max_calls)

    def find_observed(self, observed_calls: Sequence[ObservedCall]) -> _Found | None:
        """The first construction and call with observed arguments; None if none works."""
        for observed in observed_calls if time.process_time() < self._end else ():
            construction = self._constructor.construct(observed.init_args)
            if isinstance(construction, Failure):
                continue
            with suppress(TooBig, Unfit):
                state = task_checks.state_copy(construction.module)
                caller, guess = self._call(construction, observed)
                if isinstance(guess, Guess):
                    _check_repeats(self._constructor, construction, state)
                    return construction, caller, guess
        return None


def _check_repeats(constructor: Constructor, construction: Construction, state: _State) -> None:
    """Raise `Unfit` if the same construction from the same seed fails or gives another state than the first one."""
    with _filled_memory():
        again, failure = attempt(lambda: constructor.build(construction.arguments), constructor.file)
    if again is None:
        raise Unfit("no_constructor_arguments", f"is constructed only once: {failure}")
    task_checks.check_state(state, task_checks.state(again))


@contextmanager
def _filled_memory() -> Iterator[None]:
    """Fill memory that torch allocates without values with NaN within the context."""
    torch._C._set_deterministic_algorithms(True, warn_only=True)  # the public function imports Inductor, 1 s
    try:
        yield
    finally:
        torch._C._set_deterministic_algorithms(False)


def _accept(caller: Caller, limits: dict[str, int], guess: Guess) -> Guess:
    """The guess, or a smaller one that runs within the limits.

    Raises:
        Unfit: no smaller guess is within the limits, or the call is no task.
        TooBig: there are too many contractions on any input, so another construction is needed.
    """
    # The other workloads may be larger than the first one.
    limits = limits | {name: limits[name] // 2 for name in ("elements", "flops")}
    costs = _measured(caller, guess, limits)[0]
    costly = _excess(costs, limits)
    candidates = list(smaller(guess)) if costly else []
    if costs.contractions > limits["contractions"] and candidates:  # mostly on the smallest inputs too
        least, _, failure = _measured(caller, candidates[-1], limits)
        if failure is None and least.contractions > limits["contractions"]:
            candidates, costs = [], least
    for candidate in candidates:
        smaller_costs, _, failure = _measured(caller, candidate, limits)
        if failure is None:
            costs = smaller_costs
            if not _excess(costs, limits):
                guess, costly = candidate, ""
                break
    if costly and costs.contractions > limits["contractions"]:
        raise TooBig(costly, costs.contractions, (caller, guess))
    if costly:
        raise Unfit("too_big", costly)
    task_checks.check(caller, guess)
    return guess


def _other_sizes(caller: Caller, guess: Guess, limits: dict[str, int]) -> Iterator[Guess]:
    """The same call at other sizes, reduced where it would exceed the limits.

    Raises:
        Unfit: the result of such a call is not finite.
    """
    calls: dict[Any, tuple[module_facts.Census, Any]] = {}  # of the guesses that run

    def runs(candidate: Guess) -> bool:
        if candidate.elements > MAX_ELEMENTS:
            return False
        if candidate.key() not in calls:
            costs, value, failure = _measured(caller, candidate, limits)
            if failure is not None:
                return False
            calls[candidate.key()] = costs, value
        return True

    seen = [guess.specs()]
    for other in variations(guess, runs):
        for candidate in (other, *smaller(other)):
            if candidate.specs() in seen or not runs(candidate):
                continue
            costs, value = calls[candidate.key()]
            if not _excess(costs, limits):
                task_checks.check_variation(value, candidate)
                seen.append(candidate.specs())
                yield candidate
                break


def _measured(caller: Caller, guess: Guess, limits: dict[str, int]) -> tuple[module_facts.Census, Any, Failure | None]:
    """(costs, result, failure) of one call, which ends early where it has more contractions than any limit allows."""
    inputs = draw(guess.specs(), 0)
    with module_facts.Census(max(limits["contractions"], limits["layers"])) as census:
        try:
            return census, *caller.call_with(guess, inputs)
        except TooBig:
            return census, None, None


def _excess(census: module_facts.Census, limits: dict[str, int]) -> str:
    """Describe the limit that a call exceeds; "" if it exceeds none."""
    if census.contractions > limits["contractions"]:
        least = "at least " if census.is_cut else ""
        return f"one forward has {least}{census.contractions} convolutions and matrix products"
    if census.elements <= limits["elements"] and census.flops <= limits["flops"]:
        return ""
    return f"one forward writes {census.elements} elements and takes {census.flops} flops"


def _describe(caller: Caller, guesses: list[Guess]) -> dict[str, Any]:
    """The parts of the reply about the module and its workloads."""
    inputs = draw(guesses[0].specs(), 0)
    with module_facts.Census() as census:
        tree, found = task_checks.results(caller, guesses[0], inputs)
    return {
        "workloads": [_workload(guess) for guess in guesses],
        "state": module_facts.state_specs(caller.module),
        "outputs": module_facts.outputs(tree, found),
        "shapes": _made_shapes(caller, guesses),
        "operators": sorted(census.operators),
        "graph": _graph(caller, guesses[0]),
    }


def _made_shapes(caller: Caller, guesses: Sequence[Guess]) -> list[dict[str, Any]]:
    """The shapes that the calls of forward and its results have in each workload.

    Empty if forward fails while they are recorded.
    """
    first, *further = (_shapes_of_call(caller, guess) for guess in guesses)
    return with_further_shapes(first, further)


def _shapes_of_call(caller: Caller, guess: Guess) -> list[dict[str, Any]]:
    """Record the shapes of calls and results in one workload.

    The call is one of its own, as some layers of torch run other operators while functions are recorded.
    """
    inputs, calls = draw(guess.specs(), 0), CallShapes(caller.module)
    with calls.with_layers():
        found, failure = attempt(lambda: task_checks.results(caller, guess, inputs)[1], caller.file)
    if found is None or failure is not None:
        return []
    return calls.with_results(found)


def _behaviours(constructor: Constructor, construction: Construction, guess: Guess) -> dict[str, Any]:
    """Digests of the module's behaviour: one of all its outputs, and one for each number of axes at both sizes."""
    start = time.process_time()
    texts = output_texts(construction.module, guess)
    is_fast = time.process_time() - start < _DIGEST_S
    even = constructor.evened(construction, EVEN, LARGE) if is_fast else None
    is_same = even is not None and layer_types(even) == layer_types(construction.module)
    even_texts = evened_output_texts(even, EVEN, guess) if even is not None and is_same else []
    single = {digest([text]) for text in (*texts, *even_texts)} - {""}
    return {"behaviour": digest(texts), "behaviours": sorted(single)}


def layer_types(module: nn.Module) -> list[str]:
    """Types of all layers. With equal sizes, a constructor may leave out a projection, and so make another module."""
    return [type(layer).__name__ for layer in module.modules()]


def _graph(caller: Caller, guess: Guess) -> list[Any]:
    """The operator graph of one call; empty if the call fails."""
    inputs = draw(guess.specs(), 0)
    module = caller.module
    with operator_graph.Recorder(
        input=inputs, parameter=[*module.parameters()], buffer=[*module.buffers()]
    ) as recorder:
        found, failure = attempt(lambda: task_checks.results(caller, guess, inputs)[1], caller.file)
    return operator_graph.graph(recorder, found) if found is not None and failure is None else []


def _workload(guess: Guess) -> dict[str, Any]:
    tensors = [
        {"name": s.name, "shape": list(s.shape), "dtype": s.dtype, "low": s.low, "high": s.high} for s in guess.specs()
    ]
    return {"tensors": tensors, "args": guess.tree()}
