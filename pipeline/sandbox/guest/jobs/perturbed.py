"""Guest: mutants of one candidate, or the candidate itself, each called on one trial, their kernels interpreted.

Mutants are ours but for one mistake each, so they need no guest of their own.
"""

from __future__ import annotations

import copy
import ctypes
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..candidate import fake_cuda, module_call
from ..candidate.launch_log import session
from ..candidate.op_census import Plain, Watch
from ..interpreter import install
from ..interpreter.memory import OutOfBounds
from ..lib.load_source import drawn_name
from ..tamper import reachable_state
from .interpret import warm as warm

_MESSAGE = 200  # characters
_ENDS = 2


def run(request: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Make each of `calls`, of the entry point of its `code` on one `trial` of `trials`; see `verifying/trials.run`.

    `reverse` says whether the programs of its grids run from the last to the first, `configuration` which of an
    autotuned kernel's is taken, in the second of two calls, since the first may leave something; `again` whether it is
    called three times. `perturbations` name differences from a trial, and `seed` says how: another "gpu" is asked
    about, of two, or an "unknown" one; memory has "plain" contents; inputs are at an "offset" in others; the
    file has another "name"; an "instance" beside it, with other weights, is called before; the module is "handled" by
    its own methods, as its users do; and the "weights" and the "inputs" are set in place after it was called with
    others, as an optimizer does, and who has one buffer for all inputs; or inputs are outputs of its own, where they
    can be, as in a stack that is "chained"; or inputs that are "alike" are one tensor. It is "copied", if it can be,
    given a "subclass" of its class, as what shards a module does, its "forward" is called without what is around it, or
    it is given its arguments by the "keywords" that are `names`, if it takes those; "gradients" are recorded, and
    inputs take them, or "inference" mode is on; inputs are of a class that is "derived" of tensors, or "parameters";
    and the "process" has other threads and another seed.

    Replies with `runs`: a description of the call, see `verifying/module_call.call`, or what was `raised`, whether a
    kernel was `outside` of its tensors, and what the first raised that was `broken`. The description also has
    `configurations`, the most that a kernel has, the launches as they are `told`, and, of what is called again,
    `changed_again`: what the third call left otherwise than the second in what the module keeps, or in memory that
    kernels were given in both, of which state is not asked; "" for nothing. Tensors go as `<number>.output.<i>`.
    """
    torch.set_num_threads(1)
    with fake_cuda.pretend():
        return _run(request, tensors)


def _run(request: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    results: dict[str, Tensor] = {}
    runs = []
    for number, call in enumerate(request["calls"]):
        session.reverse, session.trial, session.failed = call["reverse"], call["configuration"], []
        perturbations = call["perturbations"]
        seed = call["seed"]
        known = fake_cuda.OTHERS[seed % len(fake_cuda.OTHERS)]
        there = fake_cuda.unknown(seed) if "unknown" in perturbations else known
        fake_cuda.answer(*((there, 2) if {"gpu", "unknown"} & set(perturbations) else (fake_cuda.PROPERTIES, 1)))
        install.builder.plain = "plain" in perturbations
        try:
            runs.append(_call(call, request, tensors, str(number), results))
        except Exception as error:  # noqa: BLE001  whatever it raises is the finding
            message = f"{type(error).__name__}: {error}"[:_MESSAGE]
            broken = session.failed[0] if session.failed else ""
            runs.append({"raised": message, "outside": isinstance(error, OutOfBounds), "broken": broken})
    return {"runs": runs}, results


def _call(
    call: Mapping[str, Any],
    request: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    number: str,
    results: dict[str, Tensor],
) -> dict[str, Any]:
    tried = call["trial"]
    trial = request["trials"][tried]
    perturbations, seed = call["perturbations"], call["seed"]
    name = drawn_name(seed) if "name" in perturbations else f"mutant{number}"
    module = nn.Module.to(module_call.constructed(request, call["code"], name), fake_cuda.DEVICE)
    drawn = module_call.selected(tensors, f"state.{trial['state']}.")
    module_call.load_state(module, drawn)
    if "copied" in perturbations:
        module = _copied(module)
    if "subclass" in perturbations:
        kind = type(module)
        module.__class__ = type(kind.__name__, (kind,), {})
    names = vars(sys.modules[name])
    inputs = [tensors[f"input.{tried}.{i}"] for i in range(trial["inputs"])]
    trial = {**trial, "offset": seed if "offset" in perturbations else None}
    trial |= {name: name in perturbations for name in ("alike", "derived", "parameters")}
    trial["around"] = next((name for name in module_call.AROUND if name in perturbations), "")
    if "process" in perturbations:
        torch.manual_seed(seed)
    torch.set_num_threads(2 if "process" in perturbations else 1)
    keywords = request["names"] if "keywords" in perturbations else []
    used: list[Tensor] | None = [] if {"inputs", "chained"} & set(perturbations) else None

    def once(called: nn.Module = module, inputs: Sequence[Tensor] = inputs) -> Any:
        watching = Plain(seed) if "plain" in perturbations else Watch()
        chained = "chained" in perturbations
        way = _way(called, "forward" in perturbations, keywords)
        return module_call.call(called, trial, inputs, watching, tensors.get(f"gradient.{tried}"), used, chained, way)

    if "instance" in perturbations:
        other = module_call.instance(names, request["entry_point"], request["init_args"], request["dtype"])
        other = nn.Module.to(other, fake_cuda.DEVICE)
        weights = next(key for key in request["states"] if key != trial["state"])
        module_call.load_state(other, module_call.selected(tensors, f"state.{weights}."))
        once(other)
    if "handled" in perturbations:
        module = module.train().eval().to(fake_cuda.DEVICE).cuda().requires_grad_(False)
        module.zero_grad()
        module.load_state_dict(module.state_dict())
    if used is not None and "weights" not in perturbations:
        once(module, [_other(value) for value in inputs])
    if "weights" in perturbations:
        module_call.load_state(
            module, {name: _other(value) if value.ndim else value + 1 for name, value in drawn.items()}
        )
        once(module, [_other(value) for value in inputs])
        with torch.no_grad():
            for entry, value in nn.Module.state_dict(module).items():  # as they are loaded: of what is tied, the last
                if entry in drawn:
                    value.copy_(drawn[entry])
    if "handled" in perturbations:  # last, so that nothing of ours is asked behind it
        _ask(module)
    if call["configuration"]:
        once()
    description, outputs, mutated, _ = once(module)
    results.update(module_call.pack(number, outputs, mutated))
    description |= {"configurations": session.configurations, "told": session.told}
    if call["again"]:
        once()
        first = session.given()  # alive, so that nothing new is at their addresses
        before = {key: _bytes(storage) for key, storage in first.items()}
        keeps = reachable_state.kept(module, names, contents=True)
        once()
        changed = any(_bytes(first[key]) != before[key] for key in first.keys() & session.given().keys())
        found = reachable_state.difference(keeps, reachable_state.kept(module, names, contents=True))
        description["changed_again"] = found or ("memory that kernels are given" if changed else "")
    return description


def _copied(module: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(module)
    except Exception:  # noqa: BLE001  what refuses to be copied is not wrong
        return module


def _way(module: nn.Module, directly: bool, names: Sequence[str]) -> Callable[..., Any]:
    """How a module is called: its forward `directly`, if it has one, or by keywords, if it takes them."""
    if directly and getattr(module.forward, "__func__", None) is not nn.Module.forward:
        return module.forward

    def call(*args: Any, **kwargs: Any) -> Any:
        named = dict(zip(names, args, strict=False)) | kwargs
        try:
            for function in (module.__call__, module.forward):
                inspect.signature(function).bind(**named)
        except (TypeError, ValueError):
            return module(*args, **kwargs)
        return module(**named)

    return call if names else module


def _ask(module: nn.Module) -> None:
    """All that its users may ask of it without changing it."""
    repr(module)
    module.state_dict(prefix="layer.", keep_vars=True)
    asked: tuple[Iterable[Any], ...] = (module.parameters(), module.buffers(), module.children(), module.modules())
    asked += (module.named_parameters("layer"), module.named_buffers("layer"), module.named_children())
    for each in (*asked, module.named_modules(prefix="layer")):
        list(each)
    module.apply(lambda each: None)


def _other(value: Tensor) -> Tensor:
    """Other values, but for both ends of each row, by which alone one could tell that they are."""
    other = value.flip(*range(value.ndim))
    if value.ndim and value.shape[-1] > _ENDS:
        other[..., 0], other[..., -1] = value[..., 0], value[..., -1]
    return other


def _bytes(storage: torch.UntypedStorage) -> bytes:
    return ctypes.string_at(storage.data_ptr(), storage.nbytes())
