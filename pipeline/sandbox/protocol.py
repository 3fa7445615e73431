"""The message format between host and guest: strict JSON and raw tensors after a fixed header, in a memfd.

Both directions use it. The host's reader trusts nothing. Before the first read it seals the memory (`F_SEAL_WRITE`),
which fails while a writer is left. It checks every number against the available bytes, and unpickles nothing.

    header   magic, nonce, length of the JSON, number of tensors, length of everything
    records  one for each tensor, of fixed size: dtype, dimensions, offset, length, shape
    JSON     {"body": {...}, "names": ["x", ...]}
    payload  the tensors, contiguous, each aligned to 64 bytes

The magic is written last: a truncated message has none.
"""

from __future__ import annotations

import errno
import fcntl
import json
import math
import mmap
import os
import struct
import time
from collections.abc import Mapping
from typing import Any, TypeAlias

import torch

Tensors: TypeAlias = dict[str, torch.Tensor]

MAGIC = b"KQMSG\0\0\1"
NONCE_BYTES = 16
MAX_JSON = 16 << 20  # bytes
MAX_TENSORS = 4096
MAX_DIMENSIONS = 12
_ALIGNMENT = 64
_RELEASE_S = 1.0  # for the kernel to release the memory of a dead process
_HEADER = struct.Struct("<8s16sQQQ")
_RECORD = struct.Struct(f"<QQQQ{MAX_DIMENSIONS}Q")

# A dtype's code is its index in this list: append, never reorder.
DTYPES: tuple[torch.dtype, ...] = (
    torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.bool,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
    torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2,
    torch.uint16, torch.uint32, torch.uint64,
)  # fmt: skip
_CODES = {dtype: code for code, dtype in enumerate(DTYPES)}


class ProtocolError(ValueError):
    """The bytes are not a complete, well-formed message, or a value cannot be part of one."""


def dumps(value: Any) -> bytes:
    """Strict JSON: string keys only, no NaN or infinity."""
    _check_keys(value)
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {error}") from error
    if len(text) > MAX_JSON:
        raise ProtocolError(f"JSON of {len(text)} bytes, over the limit of {MAX_JSON}")
    return text.encode("ascii")


def _check_keys(value: Any) -> None:
    """`json.dumps` turns the keys 1 and True into strings, and so can write one key twice."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            if not all(isinstance(key, str) for key in item):
                raise ProtocolError("not JSON: a key is not a string")
            pending.extend(item.values())
        elif isinstance(item, (list, tuple)):
            pending.extend(item)


def loads(data: bytes) -> Any:
    """Parse strict JSON: no duplicate keys, no NaN or infinity, whatever their spelling."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
    except ProtocolError:
        raise
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"not JSON: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ProtocolError("JSON with a key that occurs twice")
    return result


def _refuse(literal: str) -> None:
    raise ProtocolError(f"JSON with {literal}")


def _finite(literal: str) -> float:
    value = float(literal)
    if not math.isfinite(value):
        raise ProtocolError(f"JSON with {literal}")
    return value


def write(fd: int, nonce: bytes, body: Mapping[str, Any], tensors: Mapping[str, torch.Tensor], capacity: int) -> None:
    """Write one message at the start of `fd`, a memfd, which grows to fit if it is empty.

    Args:
        capacity: largest size of the message in bytes.

    Raises:
        ProtocolError: the body is not strict JSON, a tensor has no plain memory, or the message is too large.
    """
    flat = [_flat(name, tensor) for name, tensor in tensors.items()]
    text = dumps({"body": body, "names": list(tensors)})
    if len(flat) > MAX_TENSORS:
        raise ProtocolError(f"{len(flat)} tensors, over the limit of {MAX_TENSORS}")
    json_at = _HEADER.size + len(flat) * _RECORD.size
    end = json_at + len(text)
    offsets = []
    for data in flat:
        offset = _aligned(end)
        offsets.append(offset)
        end = offset + data.numel()
    if end > capacity:
        raise ProtocolError(f"a message of {end} bytes, over the limit of {capacity}")
    if os.fstat(fd).st_size == 0:
        os.ftruncate(fd, end)
    head = bytearray(_HEADER.pack(bytes(8), nonce, len(text), len(flat), end))
    for tensor, data, offset in zip(tensors.values(), flat, offsets, strict=True):
        shape = [*tensor.shape, *[0] * (MAX_DIMENSIONS - tensor.dim())]
        head += _RECORD.pack(_CODES[tensor.dtype], tensor.dim(), offset, data.numel(), *shape)
    for at, part in ((0, head + text), *zip(offsets, (data.numpy().data for data in flat), strict=True)):
        _write_all(fd, at, part)
    _write_all(fd, 0, MAGIC)  # last: it marks the message as complete


def _write_all(fd: int, at: int, data: Any) -> None:
    """Write by system calls: a mapping of fresh memory takes ten times as long, with a page fault for each 4 KiB."""
    view = memoryview(data).cast("B")
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written


def _flat(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """The tensor's values as a vector of bytes, in C order."""
    if not isinstance(tensor, torch.Tensor):
        raise ProtocolError(f"{name} is a {type(tensor).__name__}, not a tensor")
    if tensor.dtype not in _CODES or tensor.layout != torch.strided or tensor.is_meta or tensor.is_quantized:
        raise ProtocolError(f"{name} has no plain memory: {tensor.layout}, {tensor.dtype}, {tensor.device}")
    if tensor.dim() > MAX_DIMENSIONS:
        raise ProtocolError(f"{name} has {tensor.dim()} dimensions, over the limit of {MAX_DIMENSIONS}")
    return octets(tensor.detach().cpu().resolve_conj().resolve_neg())


def octets(value: torch.Tensor) -> torch.Tensor:
    """The values of a tensor as a vector of bytes, in C order; shares its memory if that is contiguous."""
    flat = value.contiguous().as_strided((value.numel(),), (1,))  # a single element is contiguous with any stride
    return flat.view(torch.uint8) if value.numel() else torch.empty(0, dtype=torch.uint8)


def read(fd: int, nonce: bytes) -> tuple[dict[str, Any], Tensors]:
    """Read the body and the tensors of the message at the start of `fd`.

    The tensors are private, writable views of the message's memory; nothing is copied.

    Raises:
        ProtocolError: the message is malformed.
    """
    size = os.fstat(fd).st_size
    magic, given, json_length, count, end = _unpacked(os.pread(fd, _HEADER.size, 0))
    if magic != MAGIC:
        raise ProtocolError("ended without a complete message")
    if given != nonce:
        raise ProtocolError("the message answers another request")
    if json_length > MAX_JSON or count > MAX_TENSORS:
        raise ProtocolError(f"a header with {json_length} bytes of JSON and {count} tensors")
    json_at = _HEADER.size + count * _RECORD.size
    if not json_at + json_length <= end <= size:
        raise ProtocolError(f"a header that gives {end} bytes of {size}")
    memory = mmap.mmap(fd, end, access=mmap.ACCESS_COPY)
    body, names = _envelope(memory[json_at : json_at + json_length], count)
    tensors: Tensors = {}
    lowest = json_at + json_length
    for index, name in enumerate(names):
        tensors[name], lowest = _tensor(memory, _HEADER.size + index * _RECORD.size, lowest)
    return body, tensors


def _unpacked(header: bytes) -> tuple[bytes, bytes, int, int, int]:
    if len(header) != _HEADER.size:
        raise ProtocolError("no complete message")
    return _HEADER.unpack(header)


def _envelope(text: bytes, count: int) -> tuple[dict[str, Any], list[str]]:
    envelope = loads(text)
    if not isinstance(envelope, dict) or envelope.keys() != {"body", "names"}:
        raise ProtocolError("an envelope with other keys than body and names")
    body, names = envelope["body"], envelope["names"]
    if not isinstance(body, dict):
        raise ProtocolError("a body that is no object")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ProtocolError("names that are no list of strings")
    if len(names) != count or len(set(names)) != count:
        raise ProtocolError("names that are not one a tensor")
    return body, names


def _tensor(memory: mmap.mmap, at: int, lowest: int) -> tuple[torch.Tensor, int]:
    """The tensor of the record at `at`, and the end of its payload. Payloads may not overlap."""
    code, dimensions, offset, length, *sizes = _RECORD.unpack_from(memory, at)
    if code >= len(DTYPES) or dimensions > MAX_DIMENSIONS:
        raise ProtocolError(f"a tensor of dtype {code} with {dimensions} dimensions")
    dtype, shape = DTYPES[code], sizes[:dimensions]
    if any(sizes[dimensions:]) or any(size >= 1 << 62 for size in shape):
        raise ProtocolError(f"a tensor of shape {sizes}")
    elements = math.prod(shape)
    if elements * dtype.itemsize != length:
        raise ProtocolError(f"{length} bytes for a tensor of {elements} elements of {dtype}")
    if offset % _ALIGNMENT or offset < lowest or offset + length > len(memory):
        raise ProtocolError(f"a tensor at {offset} of {length} bytes")
    if not elements:
        return torch.empty(shape, dtype=dtype), offset
    return torch.frombuffer(memory, dtype=dtype, count=elements, offset=offset).reshape(shape), offset + length


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT


def seal(fd: int) -> None:
    """Make a memfd's content final. Raises ProtocolError if a process can still write to it.

    A dead process keeps its memory as long as another process, such as `ps`, reads its entry in /proc.
    """
    deadline = time.monotonic() + _RELEASE_S
    while True:
        try:
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise ProtocolError(f"the message can still be written to: {error}") from error
        time.sleep(0.01)
