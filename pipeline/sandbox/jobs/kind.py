"""The description of a kind of guest job, and its requests and replies as JSON."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from types import UnionType
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin, get_type_hints

Request = TypeVar("Request")
Reply = TypeVar("Reply")
INTERPRETED: Mapping[str, str] = {"TRITON_INTERPRET": "1"}


@dataclass(frozen=True, slots=True)
class GuestKind(Generic[Request, Reply]):
    """A kind of job. The sandbox keeps one warm process for each kind, unless two share one."""

    name: str
    request: type[Request]
    reply: type[Reply]
    module: str  # of `guest/jobs`: its `run(request, tensors)` does the job, its `warm()` prepares the warm process
    environment: Mapping[str, str] = field(default_factory=dict)  # variables of the warm process
    gpu: bool = False  # the guest may use a GPU
    shares: str = ""  # kind whose warm process runs it too; both have the same environment

    @property
    def process(self) -> str:
        """Name of the kind whose warm process runs it."""
        return self.shares or self.name

    def read_request(self, message: Any) -> Request:
        """The request that the host wrote as JSON. Its form is not checked: the host is trusted."""
        return cast(Request, _build(self.request, message))


def to_json(value: Any) -> Any:
    """A request or a reply as JSON."""
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def _build(kind: Any, value: Any) -> Any:
    """Parsed JSON as an instance of `kind`: dataclasses, and tuples, lists and dicts of them."""
    if is_dataclass(kind):
        types = _types(cast(Hashable, kind))
        return kind(**{name: _build(types[name], item) for name, item in value.items()})  # type: ignore[operator]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):  # of a type and None
        return None if value is None else _build(arguments[0], value)
    if origin in (tuple, list):
        return origin(_build(arguments[0], item) for item in value)
    if origin is dict:
        return {key: _build(arguments[1], item) for key, item in value.items()}
    return value


@functools.cache
def _types(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)
