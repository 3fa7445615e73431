"""Messages between host and guest: contents survive the round trip, and malformed messages raise an error."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelquarry.pipeline.sandbox import protocol
from kernelquarry.pipeline.sandbox.protocol import DTYPES, MAX_DIMENSIONS, ProtocolError

NONCE = bytes(range(16))
HEADER = struct.Struct("<8s16sQQQ")
RECORD = struct.Struct(f"<QQQQ{MAX_DIMENSIONS}Q")


@pytest.fixture
def fd() -> Iterator[int]:
    fd = memfd()
    yield fd
    os.close(fd)


def memfd() -> int:
    return os.memfd_create("test", os.MFD_ALLOW_SEALING)


def write(fd: int, body: dict | None = None, tensors: dict | None = None, capacity: int = 1 << 20) -> None:
    protocol.write(fd, NONCE, body or {}, tensors or {}, capacity)


def sample(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    data = torch.randint(0, 2, (*shape, dtype.itemsize), dtype=torch.uint8)
    return data.view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 5), (4, 0, 2)], ids=str)
def test_every_dtype_and_shape_comes_back_bit_by_bit(fd: int, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = sample(dtype, shape)
    write(fd, {"a": [1, 2.5, None, "ü"]}, {"x": tensor, "": torch.ones(3)})
    body, tensors = protocol.read(fd, NONCE)
    assert body == {"a": [1, 2.5, None, "ü"]}
    assert list(tensors) == ["x", ""]
    assert tensors["x"].dtype == dtype and tensors["x"].shape == shape
    assert tensors["x"].flatten().view(torch.uint8).equal(tensor.flatten().view(torch.uint8))
    assert tensors[""].equal(torch.ones(3))


def test_tensors_that_are_views_are_sent_by_value(fd: int) -> None:
    base = torch.arange(12.0).reshape(3, 4)
    given = {
        "transposed": base.t(),
        "strided": base[:, ::2],
        "one element": torch.empty_like(base[:1, 0]).copy_(base[:1, 0]),
        "expanded": base[0].expand(5, 4),
        "grad": base.clone().requires_grad_(),
        "conjugate": torch.tensor([1 + 2j]).conj(),
    }
    write(fd, {}, given)
    _, tensors = protocol.read(fd, NONCE)
    for name, tensor in given.items():
        assert tensors[name].equal(tensor.detach().resolve_conj()), name
        assert tensors[name].is_contiguous() and not tensors[name].requires_grad


def test_a_tensor_read_is_private_and_writable(fd: int) -> None:
    write(fd, {}, {"x": torch.zeros(4)})
    protocol.seal(fd)
    _, first = protocol.read(fd, NONCE)
    first["x"].fill_(7)
    _, second = protocol.read(fd, NONCE)
    assert second["x"].equal(torch.zeros(4))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.empty(2, device="meta"),
        torch.eye(2).to_sparse(),
        torch.ones([1] * (MAX_DIMENSIONS + 1)),
        "no tensor",
    ],
    ids=["meta", "sparse", "dimensions", "str"],
)
def test_a_tensor_without_plain_memory_is_refused(fd: int, tensor: object) -> None:
    with pytest.raises(ProtocolError, match="x"):
        write(fd, {}, {"x": tensor})


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {1: 2}, {"a": {True: 1}}, b"bytes", {1, 2}, ...], ids=repr
)
def test_only_strict_json_is_sent(fd: int, value: object) -> None:
    with pytest.raises(ProtocolError, match="JSON"):
        write(fd, {"value": value})


def test_a_message_over_the_capacity_is_refused_and_leaves_no_message(fd: int) -> None:
    os.ftruncate(fd, 1000)
    with pytest.raises(ProtocolError, match="over the limit of 1000"):
        write(fd, {}, {"x": torch.zeros(1000)}, capacity=1000)
    with pytest.raises(ProtocolError, match="without a complete message"):
        protocol.read(fd, NONCE)


@pytest.mark.parametrize(
    "text",
    [
        b'{"body": {"a": NaN}, "names": []}',
        b'{"body": {"a": -Infinity}, "names": []}',
        b'{"body": {"a": 1e999}, "names": []}',
        b'{"body": {"a": 1, "a": 2}, "names": []}',
        b'{"body": {}, "body": {}, "names": []}',
        b'{"body": {}, "names": [], "more": 1}',
        b'{"body": {}}',
        b'{"body": [], "names": []}',
        b'{"body": {}, "names": ["x"]}',
        b'{"body": {}, "names": 3}',
        b'{"body": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b'}, "names": []}',
        b'{"body": {"a": ' + b"9" * 10_000 + b'}, "names": []}',
        b'{"body": {}, "names": []} trailing',
        b"\xff\xfe",
        b"",
    ],
    ids=lambda text: repr(text[:40]),
)
def test_json_that_is_not_strict_is_refused(fd: int, text: bytes) -> None:
    os.write(fd, HEADER.pack(protocol.MAGIC, NONCE, len(text), 0, HEADER.size + len(text)) + text)
    with pytest.raises(ProtocolError):
        protocol.read(fd, NONCE)


@pytest.mark.parametrize(
    ("json_length", "count", "end"),
    [(1 << 62, 0, 1 << 63), (2, 1 << 62, 4096), (2, 5000, 4096), (2, 0, 1 << 62), (2, 0, 0), (4000, 0, 100)],
)
def test_a_header_that_does_not_add_up_is_refused(fd: int, json_length: int, count: int, end: int) -> None:
    os.write(fd, HEADER.pack(protocol.MAGIC, NONCE, json_length, count, end).ljust(4096, b"\0"))
    with pytest.raises(ProtocolError):
        protocol.read(fd, NONCE)


def forged(*record: int) -> int:
    """A message with one float32 vector of four elements, its record replaced."""
    fd = memfd()
    write(fd, {}, {"x": torch.zeros(4)})
    os.pwrite(fd, RECORD.pack(*record, *[0] * (4 + MAX_DIMENSIONS - len(record))), HEADER.size)
    return fd


@pytest.mark.parametrize(
    "record",
    [
        (99, 1, 256, 16, 4),  # no such dtype
        (0, 99, 256, 16, 4),  # more dimensions than a record has
        (0, 1, 256, 16, 1 << 62),  # a size whose product overflows 64 bits
        (0, 2, 256, 16, 1 << 32, 1 << 32),
        (0, 1, 256, 12, 4),  # bytes and elements do not agree
        (0, 1, 260, 16, 4),  # not aligned
        (0, 1, 0, 16, 4),  # in the header
        (0, 1, 1 << 40, 16, 4),  # past the end
        (0, 1, (1 << 64) - 64, 16, 4),
        (0, 1, 256, 16, 4, 1),  # a size behind the last dimension
    ],
    ids=str,
)
def test_a_record_that_does_not_add_up_is_refused(record: tuple[int, ...]) -> None:
    fd = forged(*record)
    with pytest.raises(ProtocolError):
        protocol.read(fd, NONCE)
    os.close(fd)


def test_tensors_may_not_share_memory(fd: int) -> None:
    write(fd, {}, {"x": torch.zeros(16), "y": torch.zeros(16)})
    first = os.pread(fd, RECORD.size, HEADER.size)
    os.pwrite(fd, first, HEADER.size + RECORD.size)
    with pytest.raises(ProtocolError, match="a tensor at"):
        protocol.read(fd, NONCE)


def test_an_answer_to_another_request_is_refused(fd: int) -> None:
    write(fd)
    with pytest.raises(ProtocolError, match="another request"):
        protocol.read(fd, bytes(16))


def test_a_message_that_is_still_writable_is_refused(fd: int) -> None:
    write(fd)
    writer = mmap.mmap(fd, HEADER.size)
    with pytest.raises(ProtocolError, match="can still be written"):
        protocol.seal(fd)
    writer.close()
    protocol.seal(fd)
    assert fcntl.fcntl(fd, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE
    with pytest.raises(PermissionError):
        os.pwrite(fd, b"x", 0)


def _message() -> bytes:
    fd = memfd()
    write(fd, {"a": 1}, {"x": torch.arange(6.0).reshape(2, 3), "y": torch.ones(5, dtype=torch.bool)})
    data = os.pread(fd, 1 << 16, 0)
    os.close(fd)
    return data


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(_message()) - 1), st.integers(0, 255)), max_size=8), st.integers(0, 600))
def test_no_damage_does_more_than_raise(changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(_message())
    for place, value in changes:
        data[place] = value
    fd = memfd()
    os.write(fd, bytes(data[: len(data) - cut] if cut < 300 else data))
    try:
        _, tensors = protocol.read(fd, NONCE)
        assert all(tensor.numel() * tensor.element_size() <= len(data) for tensor in tensors.values())
    except ProtocolError:
        pass
    finally:
        os.close(fd)


def test_a_mapping_that_is_about_to_go_is_waited_for(fd: int) -> None:
    """A dead process keeps its mapping while a monitor reads its entry in /proc."""
    os.ftruncate(fd, 4096)
    mapping = mmap.mmap(fd, 4096)
    threading.Timer(0.1, mapping.close).start()
    protocol.seal(fd)
    assert mapping.closed
