"""Perturbations: ways in which a use of a candidate may differ from its trials, and must not change its results."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from kernelquarry.pipeline.sandbox.jobs.calls import ModuleSource

from ..lib.load_source import drawn_name
from . import fake_cuda
from .candidate_call import GRADIENTS, INFERENCE, CallResult, CandidateCall
from .launch_log import Order, session
from .module_setup import instance, load_state
from .op_census import RandomFillWatch, Watch, ZeroFillWatch

_ENDS = 2


@dataclass(slots=True)
class PerturbedUse:
    """A use of a candidate, which perturbations change step by step."""

    source: ModuleSource
    call: CandidateCall
    other_weights: Mapping[str, Tensor]
    argument_names: Sequence[str]  # of forward
    name: str  # of the candidate's file
    seed: int
    module: nn.Module = None  # type: ignore[assignment]  # set when it is constructed
    namespace: dict[str, Any] = field(default_factory=dict)  # of the file, once it is loaded
    watch: Callable[[], Watch] = Watch
    varied: bool = False  # a call with other inputs was made

    def run(self, module: nn.Module | None = None, call: CandidateCall | None = None) -> CallResult:
        """Make the call, of the candidate unless another module is given."""
        return (call or self.call).run(module or self.module, self.watch())

    def change(self, **options: Any) -> None:
        self.call = replace(self.call, **options)


Step = Callable[[PerturbedUse], None]


def _nothing(use: PerturbedUse) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Perturbation:
    before: Step = _nothing  # before the module is constructed
    around: Step = _nothing  # when it is constructed and has its weights
    after: Step = _nothing  # directly before the observed call


def _options(**options: Any) -> Perturbation:
    return Perturbation(before=lambda use: use.change(**options))


def _other_gpu(use: PerturbedUse) -> None:
    fake_cuda.answer(fake_cuda.OTHERS[use.seed % len(fake_cuda.OTHERS)], 2)


def _unknown_gpu(use: PerturbedUse) -> None:
    fake_cuda.answer(fake_cuda.unknown(use.seed), 2)


def _fill_at_random(use: PerturbedUse) -> None:
    session.zero_masked = True
    use.watch = partial(RandomFillWatch, use.seed)


def _fill_with_zeros(use: PerturbedUse) -> None:
    use.watch = ZeroFillWatch


def _run_programs(order: Order) -> Perturbation:
    def before(use: PerturbedUse) -> None:
        session.order = order

    return Perturbation(before)


def _other_name(use: PerturbedUse) -> None:
    use.name = drawn_name(use.seed)


def _copy(use: PerturbedUse) -> None:
    try:
        use.module = copy.deepcopy(use.module)
    except Exception:  # noqa: BLE001  a module that refuses to be copied is not wrong
        return


def _subclass(use: PerturbedUse) -> None:
    kind = type(use.module)
    use.module.__class__ = type(kind.__name__, (kind,), {})


def _other_process(use: PerturbedUse) -> None:
    torch.manual_seed(use.seed)
    torch.set_num_threads(2)


def _other_instance(use: PerturbedUse) -> None:
    other = nn.Module.to(instance(use.namespace, use.source), fake_cuda.DEVICE)
    load_state(other, use.other_weights)
    use.run(other)


def _handle(use: PerturbedUse) -> None:
    module = use.module.train().eval().to(fake_cuda.DEVICE).cuda().requires_grad_(False)
    module.zero_grad()
    module.load_state_dict(module.state_dict())
    use.module = module


def _ask(use: PerturbedUse) -> None:
    """Call all methods of modules that change nothing."""
    module = use.module
    repr(module)
    module.state_dict(prefix="layer.", keep_vars=True)
    parts: tuple[Iterable[Any], ...] = (module.parameters(), module.buffers(), module.children(), module.modules())
    parts += (module.named_parameters("layer"), module.named_buffers("layer"), module.named_children())
    for each in (*parts, module.named_modules(prefix="layer")):
        list(each)
    module.apply(lambda each: None)


def _vary_inputs(use: PerturbedUse) -> None:
    if not use.varied:
        _call_with_other_inputs(use)


def _call_with_other_inputs(use: PerturbedUse) -> None:
    use.varied = True
    use.run(call=replace(use.call, inputs=[_other(value) for value in use.call.inputs]))


def _call_with_other_weights(use: PerturbedUse) -> None:
    weights = use.call.weights
    load_state(use.module, {name: _other(value) if value.ndim else value + 1 for name, value in weights.items()})
    _call_with_other_inputs(use)
    with torch.no_grad():
        for entry, value in nn.Module.state_dict(use.module).items():  # of entries that are tied, the last counts
            if entry in weights:
                value.copy_(weights[entry])


def _other(value: Tensor) -> Tensor:
    """The values in reverse, but for both ends of each row: a candidate may look at these alone."""
    other = value.flip(*range(value.ndim))
    if value.ndim and value.shape[-1] > _ENDS:
        other[..., 0], other[..., -1] = value[..., 0], value[..., -1]
    return other


def _forward_of(module: nn.Module) -> Callable[..., Any]:
    """The module's forward without its hooks, if it has one."""
    has_own = getattr(module.forward, "__func__", None) is not nn.Module.forward
    return module.forward if has_own else module


def _use_keywords(use: PerturbedUse) -> None:
    if use.argument_names:
        use.change(function=lambda module: partial(_call_by_keywords, module, use.argument_names))


def _call_by_keywords(module: nn.Module, names: Sequence[str], /, *args: Any, **kwargs: Any) -> Any:
    """Call the module with all arguments by keyword if its signature allows this, else as given."""
    named = dict(zip(names, args, strict=False)) | kwargs
    try:
        for function in (module.__call__, module.forward):
            inspect.signature(function).bind(**named)
    except (TypeError, ValueError):
        return module(*args, **kwargs)
    return module(**named)


# In the order in which they are applied.
PERTURBATIONS: Mapping[str, Perturbation] = {
    "gpu": Perturbation(_other_gpu),  # one of two
    "unknown": Perturbation(_unknown_gpu),
    "noise": Perturbation(_fill_at_random),  # fresh memory holds numbers
    "zeros": Perturbation(_fill_with_zeros),  # fresh memory holds zeros
    "reverse": _run_programs(Order.REVERSE),
    "random": _run_programs(Order.RANDOM),
    "offset": Perturbation(lambda use: use.change(offset=use.seed)),
    "name": Perturbation(_other_name),
    "alike": _options(alike=True),
    "derived": _options(derived=True),
    "parameters": _options(parameters=True),
    "inference": _options(recording=INFERENCE),
    "gradients": _options(recording=GRADIENTS),
    "keywords": Perturbation(_use_keywords),
    "forward": _options(function=_forward_of),
    "copied": Perturbation(around=_copy),
    "subclass": Perturbation(around=_subclass),  # as libraries that shard a module make one
    "process": Perturbation(around=_other_process),
    "instance": Perturbation(around=_other_instance),  # with other weights, called before
    "handled": Perturbation(around=_handle, after=_ask),  # by the methods of modules
    "weights": Perturbation(around=_call_with_other_weights),  # set in place, as an optimizer does
    "inputs": Perturbation(lambda use: use.change(kept=[]), _vary_inputs),  # one buffer for all inputs
    "chained": Perturbation(lambda use: use.change(kept=[], chained=True), _vary_inputs),
}
