"""Guest: what a candidate's forward does where no trial looks, at other sizes and after many calls.

No kernel runs or is compiled, so a rehearsal costs little at any size: memory that nobody writes to is not even there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._C import _dispatch_has_kernel_for_dispatch_key
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from triton.runtime.jit import JITFunction

from ..candidate import fake_cuda, module_call, op_census
from ..candidate.input_layouts import offset, zeros
from ..candidate.launch_log import Launched, bind, entries, session, sizes
from ..compiler import autotune
from ..lib.load_source import drawn_name, path_of
from ..lib.pytree import fill
from ..tamper import global_state, reachable_state
from ..tamper.caught_exceptions import Handled

Path = list[str]
_THREADS, _SEED = 2, 4_294_967_291  # 1 and 0 elsewhere
_MESSAGE = 200  # characters
_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd
_TALLEST = 65_535  # programs along a grid's second and third axis


def warm() -> None:
    op_census.warm()
    autotune.install(_unseen)


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The path of `code`'s entry point on each of `calls`, or on what is to be called `otherwise` if one raises, and
    `repeats` times on the first of them again. Of what is `mixed`, not all is computed by kernels.

    It goes twice through all of `calls`, calls of other `sizes`, another instance, which is called with the last of
    `calls` before the first, and half of those repetitions; the path of the first call is from before that.

    A call may have at most so many `steps`, behind which its path is said to be `broken_off`.
    A path names the operators that forward ran, views and allocations excepted, and its launches. Replies with `paths`,
    where None stands for a call that raised; with `told`, the launches of each with all that they were given; with
    `raised`, why there is no path; with `later`, the paths of the repetitions that are no path of the first call,
    launches with what they were given; and with what is "" if there is nothing to say: the first exception that it
    `handled`, what it `keeps` that is another after the second time than after the first, and what it `left` changed of
    what others share, or has otherwise than all modules.

    What a check need not have in common with a use is otherwise here than in the other guests, so that who asks for it
    goes another way: the number of threads, the module's name, the seed, whether gradients are recorded and asked for,
    or nothing is tracked at all, what its parameters have of gradients, and whether an input is a part of a larger
    tensor, made by an operator, or a parameter with a gradient. `seed` says what name, and where in the larger tensor.
    """
    torch.set_num_threads(_THREADS)
    JITFunction.run = _note
    with fake_cuda.pretend():
        name, _Noted.seed, _Noted.broken_off = drawn_name(request["seed"]), request["seed"], request["broken_off"]
        handled, shared, settings = Handled(path_of(name)), global_state.Shared(), global_state.settings()
        with handled:
            module = module_call.constructed(request, request["code"], name)
        torch.manual_seed(_SEED)
        left = global_state.changed(settings | {"seed": _SEED})
        nn.Module.to(module, fake_cuda.DEVICE)
        first, half = request["calls"][0], request["repeats"] // 2
        again, found, names = list[tuple[int, Any]](), list[dict[str, str]](), vars(sys.modules[name])
        early = [handled.by(_path, module, first) for _ in range(2)][1]  # no other size was seen
        for _ in range(2):  # the same twice, so that nothing that is counted stays unseen
            # A tuner resets what it timed in the first call of a size, so those of the second time count.
            calls = [_either(handled, module, call) for call in request["calls"]]
            for call in (*request["sizes"], first):  # the last leaves what it keeps as the first left it
                _path(module, call)
            other = module_call.instance(names, request["entry_point"], request["init_args"], request["dtype"])
            nn.Module.to(other, fake_cuda.DEVICE)
            for call in (request["calls"][-1], first):  # of which the second makes what only that size needs
                _path(other, call)
            again += [(0, _path(other, first)), *_repeated(module, first, half)]
            found.append(reachable_state.kept(module, names, contents=False))
            _Noted.again = True
        keeps = reachable_state.difference(*found)
    later = _otherwise([(0, calls[0]), *again], early, request["mixed"])
    paths, told, raised = (list(each) for each in zip(early, *calls[1:], strict=True))
    reply = {"paths": paths, "told": told, "raised": raised, "later": later[:1]}
    left = left or _Noted.left or shared.changed() or global_state.redefined(module)
    return reply | {"handled": handled.first, "keeps": keeps, "left": left}, {}


_MODES: tuple[tuple[Callable[[], AbstractContextManager[Any]], bool], ...] = (  # and whether inputs take gradients
    (torch.no_grad, False),
    (torch.enable_grad, True),
    (torch.inference_mode, False),
)


def _otherwise(again: Iterable[tuple[int, Any]], early: Any, mixed: bool) -> list[Any]:
    """Those of the calls, each with the number of its mode, that go another way than the early one. Layers of PyTorch
    may run other operators where nothing is recorded: of what is `mixed` all calls of a mode must run the same, and
    all the same launches."""
    known: dict[int, Any] = {0: early}
    found = []
    for mode, call in again:
        first = known.setdefault(mode, call) if mixed else early
        if call != first or _launches(call) != _launches(early):
            found.append(call)
    return found


def _launches(call: tuple[Path | None, list[str], str]) -> tuple[Path | None, list[str]]:
    path, told, _ = call
    return path and [step for step in path if step.startswith("launch ")], told


def _repeated(module: nn.Module, call: Mapping[str, Any], times: int) -> list[tuple[int, Any]]:
    parameters = [value for value in entries(module).values() if isinstance(value, nn.Parameter)]
    parameters = [value for value in parameters if value.is_floating_point()]
    paths = []
    for number in range(times):
        mode = _MODES[number % len(_MODES)]
        for value in parameters:
            value.requires_grad_(mode[1]).grad = torch.empty_like(value) if mode[1] else None
        paths.append((number % len(_MODES), _path(module, call, mode)))
    return paths


@contextmanager
def _unseen() -> Iterator[None]:
    """What a tuner runs is no part of a path."""
    noted = len(_Noted.path)
    yield
    del _Noted.path[noted:]


class _BrokenOff(LookupError):
    """A path is as long as it may be; of the kind that `handled` does not count, since it is ours."""


class _Noted(TorchDispatchMode):
    path: Path = []
    most = sys.maxsize  # steps
    seed = 0
    broken_off = ""
    left = ""  # of what a call changed for all
    returned: dict[int, Tensor] = {}  # of the first time through all calls, by the address of its memory
    again = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::")
        # In inference mode what is made of other operators comes here as one. Elsewhere PyTorch takes it apart.
        if torch.is_inference_mode_enabled() and _dispatch_has_kernel_for_dispatch_key(func.name(), _COMPOSITE):
            with self:
                return func._op_dk(_COMPOSITE, *args, **(kwargs or {}))
        if name not in op_census.VIEW | op_census.ALLOCATE | op_census.ASK:
            self.step(name)
        return func(*args, **(kwargs or {}))

    @classmethod
    def step(cls, name: str) -> None:
        if len(cls.path) == cls.most:
            raise _BrokenOff
        cls.path.append(name)


def _note(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Launched:
    if not warmup:
        _Noted.step(f"launch {self.__name__}")
        bound = bind(self.fn, args, options)
        programs = sizes(grid, bound)
        if any(count > _TALLEST for count in programs[1:]):
            raise RuntimeError("Triton Error [CUDA]: invalid argument")
        session.tell(self.__name__, programs, bound, options)
    return Launched()


def _note_returned(result: Any, given: Iterable[Tensor]) -> None:
    """That it has the memory of an earlier result, which its caller may still hold."""
    free = [value for value in tree_leaves(result) if isinstance(value, Tensor) and value.numel()]
    own = {value.untyped_storage().data_ptr() for value in given}
    found = {value.untyped_storage().data_ptr(): value for value in free}
    if found.keys() & _Noted.returned.keys() - own:
        _Noted.path.append("returns the memory of an earlier result")
    if not _Noted.again:
        _Noted.returned |= found


def _made(value: Tensor, taking: bool) -> Tensor:
    """By an operator, of what takes a gradient; or a parameter that has one."""
    if taking:
        return value.requires_grad_().view_as(value)
    parameter = nn.Parameter(value)
    parameter.grad = torch.empty_like(parameter)
    return parameter


def _either(handled: Handled, module: nn.Module, call: Mapping[str, Any]) -> tuple[Path | None, list[str], str]:
    """As `_path`, of what is to be called otherwise if this call raises."""
    found: tuple[Path | None, list[str], str] = handled.by(_path, module, call)
    refused = found[0] is None and call.get("otherwise")
    return handled.by(_path, module, call["otherwise"]) if refused else found


def _path(module: nn.Module, call: Mapping[str, Any], mode: Any = None) -> tuple[Path | None, list[str], str]:
    """With what it was told of its launches, and why there is none; see `_MODES`."""
    tracked, taking = mode or _MODES[0]
    _Noted.path, session.trial, _Noted.most = [], call["trial"], call.get("steps", sys.maxsize)
    try:
        with tracked():
            inputs = zeros(call["inputs"], fake_cuda.DEVICE)
            if mode:
                inputs = [offset(value, _Noted.seed) for value in inputs]
                if not torch.is_inference_mode_enabled():
                    inputs = [_made(value, taking) if value.is_floating_point() else value for value in inputs]
            args, kwargs = fill(json.loads(call["args"]), inputs), fill(json.loads(call["kwargs"]), inputs)
            session.begin(module, inputs)
            before = global_state.settings()
            with _Noted():
                result = module(*args, **kwargs)
            _Noted.left = _Noted.left or global_state.changed(before)
            if mode is None:  # repetitions may give one result again, if the first calls did
                _note_returned(result, (*inputs, *entries(module).values()))
    except _BrokenOff:
        return [*_Noted.path, _Noted.broken_off], session.told, ""
    except Exception as error:  # noqa: BLE001  what a candidate refuses, it does not get wrong
        return None, [], f"{type(error).__name__}: {error}"[:_MESSAGE]
    return _Noted.path, session.told, ""
