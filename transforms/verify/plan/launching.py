"""Kernels of the evaluator: their decorators, and launches as Triton's autotuner, heuristics and binder make them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from .values import REQUIRED, Config, Heuristics, Kernel, Launcher, Raised, Scope, Tuner, Unsupported

if TYPE_CHECKING:
    from .evaluator import Evaluator

_TUNER = ("configs", "key", "prune_configs_by", "reset_to_zero", "restore_value")
_MAX_GRID = 3


def define(evaluator: Evaluator, node: ast.FunctionDef) -> Kernel:
    """A kernel of the file. Raises: Raised, Unsupported."""
    taken = node.args
    positional = [each.arg for each in (*taken.posonlyargs, *taken.args)]
    parameters: dict[str, Any] = dict.fromkeys(positional, REQUIRED)
    parameters |= {each.arg: REQUIRED for each in taken.kwonlyargs}
    starts = zip(reversed(positional), reversed(taken.defaults), strict=False)
    keyword = ((each.arg, value) for each, value in zip(taken.kwonlyargs, taken.kw_defaults, strict=True) if value)
    for name, default in (*starts, *keyword):
        parameters[name] = evaluator.expression(default, Scope())
    decorators = [_decorator(evaluator, each) for each in node.decorator_list]
    return Kernel(node.name, parameters, tuple(each for each in decorators if each is not None))


def _decorator(evaluator: Evaluator, node: ast.expr) -> Tuner | Heuristics | None:
    path = evaluator.path(node.func if isinstance(node, ast.Call) else node)
    if path == "triton.jit":
        return None
    if not isinstance(node, ast.Call) or path not in ("triton.autotune", "triton.heuristics"):
        raise Unsupported(f"the decorator {ast.unparse(node)}")
    order = _TUNER if path == "triton.autotune" else ("values",)
    given = dict(zip(order, (evaluator.expression(each, Scope()) for each in node.args), strict=False))
    given |= {each.arg or "": evaluator.expression(each.value, Scope()) for each in node.keywords}
    if path == "triton.heuristics":
        return Heuristics(given["values"])
    prune = given.get("prune_configs_by") or {}
    if prune.keys() - {"early_config_prune"}:
        raise Unsupported("a model of performance that prunes configurations")
    configs = tuple(given.get("configs") or ()) or (Config({}),)
    if not all(isinstance(each, Config) for each in configs):
        raise Unsupported("configurations that are none")
    resets = given.get("reset_to_zero") or ()
    return Tuner(configs, tuple(given.get("key") or ()), prune.get("early_config_prune"), tuple(resets))


def launch(evaluator: Evaluator, launcher: Launcher, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Make a launch. Raises: Raised, Unsupported."""
    kernel = launcher.kernel
    _run(evaluator, launcher, kernel.decorators, list(args), dict(kwargs))


def _run(
    evaluator: Evaluator,
    launcher: Launcher,
    decorators: Sequence[Tuner | Heuristics],
    args: list[Any],
    kwargs: dict[str, Any],
) -> None:
    kernel = launcher.kernel
    if not decorators:
        _launch(evaluator, launcher, args, kwargs)
        return
    first, *rest = decorators
    named = dict(zip(kernel.parameters, args, strict=False))
    if isinstance(first, Heuristics):
        for name, function in first.values.items():
            kwargs[name] = evaluator.call(function, [{**named, **kwargs}], {})
        _run(evaluator, launcher, rest, args, kwargs)
        return
    config = _select(evaluator, first, kernel, named, kwargs, launcher.grid)
    if conflicts := kwargs.keys() & config.kwargs.keys():
        raise Raised(f"ValueError: both a tuner and the launch give {', '.join(sorted(conflicts))}")
    if config.pre_hook is not None:
        evaluator.call(config.pre_hook, [{**named, **kwargs, **config.options()}], {})
    _run(evaluator, launcher, rest, args, {**kwargs, **config.options()})


def _select(
    evaluator: Evaluator, tuner: Tuner, kernel: Kernel, named: Mapping[str, Any], kwargs: Mapping[str, Any], grid: Any
) -> Config:
    """The configuration of a launch: of the trial's number, as guests select it (`guest/compiler/autotune.py`)."""
    if len(tuner.configs) == 1:
        return tuner.configs[0]
    given = {name: value for name, value in {**named, **kwargs}.items() if name in kernel.parameters}
    values = [given[name] for name in tuner.key if name in given]
    key = (*values, *(str(each.dtype) for each in given.values() if isinstance(each, Tensor)))
    try:
        known = tuner.selected.get(key)
    except TypeError as error:
        raise Raised(f"TypeError: {error}") from error
    if known is None:
        pruned: Sequence[Config] = tuner.configs
        if tuner.prune is not None:
            options = {**kwargs, "grid": grid, "warmup": False}
            pruned = evaluator.call(tuner.prune, [list(tuner.configs), dict(named)], options)
            if not isinstance(pruned, list | tuple) or not all(isinstance(each, Config) for each in pruned):
                raise Unsupported("configurations that are pruned to none")
            if not pruned:
                raise Raised("AutotunerError: no configuration is left")
        wanted = tuner.configs[evaluator.trial % len(tuner.configs)]
        known = tuner.selected[key] = wanted if any(each is wanted for each in pruned) else pruned[0]
    return known


def _launch(evaluator: Evaluator, launcher: Launcher, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    kernel = launcher.kernel
    bound = dict(zip(kernel.parameters, args, strict=False))
    options = {name: value for name, value in kwargs.items() if name not in kernel.parameters}
    named = {name: value for name, value in kwargs.items() if name in kernel.parameters}
    if len(args) > len(kernel.parameters) or bound.keys() & named.keys():
        raise Raised(f"TypeError: {kernel.name}() got too many arguments")
    bound = {name: {**bound, **named}.get(name, default) for name, default in kernel.parameters.items()}
    if missing := [name for name, value in bound.items() if value is REQUIRED]:
        raise Raised(f"TypeError: {kernel.name}() missing arguments: {', '.join(missing)}")
    grid = launcher.grid
    if not isinstance(grid, tuple | list | int):
        grid = evaluator.call(grid, [dict(bound)], {})
    if isinstance(grid, int) or not all(isinstance(each, int) for each in grid) or not 1 <= len(grid) <= _MAX_GRID:
        raise Raised(f"TypeError: {grid} is no grid")
    if 0 not in grid:  # else Triton launches nothing
        evaluator.launch(kernel, tuple(grid), bound, options)
