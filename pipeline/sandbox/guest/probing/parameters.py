"""The parameters of a module's constructor and of its `forward`, with hints from the source."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from .axes import entry_of
from .guarded_call import Unfit
from .parameter_usage import Usage
from .parameter_values import Parameter
from .source_hints import Source

_EMPTY = inspect.Parameter.empty


def constructor_parameters(entry: type[nn.Module], source: Source, namespace: Mapping[str, Any]) -> Iterator[Parameter]:
    """The positional parameters of the first constructor in the MRO that names any."""
    for base in entry.__mro__:
        initialiser = base.__dict__.get("__init__")
        signature = _signature(initialiser) if base not in (nn.Module, object) else None
        if signature is None:
            continue
        parameters = list(signature.parameters.values())[1:]
        named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if not named and any(p.kind is p.VAR_POSITIONAL for p in parameters):
            continue  # it passes its arguments on to a base
        function = source.method(base.__name__, "__init__")
        defaults = source.defaults(function) if function else {}
        for p in named:
            usage = source.usage(base.__name__, "__init__", p.name)
            _add_keys(usage, namespace)
            required = p.default is _EMPTY
            yield Parameter(
                name=p.name,
                required=required,
                annotation=_annotation(p) or source.documented(base.__name__, p.name),
                usage=usage,
                default="" if required else defaults.get(p.name, repr(p.default)),
                value=None if required else p.default,
                examples=source.examples(p.name),
            )
        return


def has_var_positional(entry: type[nn.Module]) -> bool:
    """True if the constructor has a parameter such as `*args`."""
    signature = _signature(entry)
    return signature is not None and any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())


def _signature(function: Callable[..., Any] | None) -> inspect.Signature | None:
    if function is None:
        return None
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _annotation(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    if annotation is _EMPTY:
        return ""
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if type(annotation) is type else str(annotation)


def _add_keys(usage: Usage, namespace: Mapping[str, Any]) -> None:
    """Add to `usage.strings` the first string keys of the file's dicts that the parameter is looked up in."""
    for table in sorted(usage.tables):
        found = namespace.get(table)
        keys = [key for key in list(found)[:3] if isinstance(key, str)] if isinstance(found, dict) else []
        usage.strings += [key for key in keys if key not in usage.strings]
    for part in usage.parts.values():
        _add_keys(part, namespace)


@dataclass(frozen=True, slots=True)
class Input:
    """One parameter of `forward`."""

    name: str
    required: bool
    usage: Usage
    annotation: str = ""
    default: Any = None
    entry: str = ""  # its entry in docstrings and comments
    is_variadic: bool = False  # `*inputs`, which takes any number of arguments


def forward_inputs(module: nn.Module, usage: Callable[[str], Usage], prose: str = "") -> list[Input]:
    """The positional parameters of `forward`. The first one counts as required.

    Args:
        usage: name -> how forward uses the parameter.
        prose: docstrings and comments, from `Source.prose`.

    Raises:
        Unfit: there are none, or a keyword-only parameter is required.
    """
    signature = _signature(module.forward)
    if signature is None:
        raise Unfit("no_workload", "forward has no signature")
    found: list[Input] = []
    for p in signature.parameters.values():
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            required = p.default is _EMPTY
            default = None if required else p.default
            entry = entry_of(prose, p.name, not found)
            found.append(Input(p.name, required, usage(p.name), _annotation(p), default, entry))
        elif p.kind is p.VAR_POSITIONAL and not found:
            found.append(Input(p.name, True, Usage(), is_variadic=True))
        elif p.kind is p.KEYWORD_ONLY and p.default is _EMPTY:
            raise Unfit("no_workload", f"forward needs the keyword {p.name}")
    if not found:
        raise Unfit("no_workload", "forward takes no input")
    return [replace(found[0], required=True), *found[1:]]
