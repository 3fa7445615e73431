"""Better guesses from what a failed call said.

Sizes are pairwise distinct, so a size that a message of torch names is the size of one symbol,
and what it should have been is mostly named too. Few patterns are tied to one operator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from .guarded_call import Failure
from .guess import ANY_KEYS, LAYOUTS, SIZES, Guess, ListArg, PlainArg, SizeArg, SizesArg, TensorArg, planar

_INT = r"(\d+)"
# (pattern, index of the group with the size that was, index of the group with the size that was wanted)
_PAIRS: tuple[tuple[str, int, int], ...] = (
    (r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", 1, 2),
    (r"to have (\d+) channels, but got (\d+)", 2, 1),
    (r"should contain (\d+) elements not (\d+)", 1, 2),
    (r"normalized_shape=\[(?:[\d, ]+, )?(\d+)\].*size\[(?:[\d, ]+, )?(\d+)\]", 2, 1),
    (r"Expected size (\d+) but got size (\d+)", 2, 1),
    (r"Expected size (\d+) but got size (\d+)", 1, 2),
    (r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", 1, 2),
    (r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", 2, 1),
    (r"[Ee]xpected (\d+),? (?:but )?got (\d+)", 2, 1),
    (r"got (\d+),? (?:but )?expected (\d+)", 1, 2),
    (r"dimension of (\d+),? but got (\d+)", 2, 1),
    (r"to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]", 2, 1),
    (r"to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]", 1, 2),
    (r"to be: \[(\d+), \d+\] but got: \[(\d+), \d+\]", 2, 1),
    (r"to be: \[(\d+), \d+\] but got: \[(\d+), \d+\]", 1, 2),
    (r"num_features \((\d+)\), but got: (\d+)", 2, 1),
    (r"parameter numbers = (\d+) and channel size = (\d+)", 2, 1),
    (r"vector of size .*?weight of shape \[(\d+)\] and input of shape \[\d+, (\d+)", 2, 1),
    (r"has size (\d+) for operand \d+ which does not broadcast with previously seen size (\d+)", 1, 2),
    (r"has size (\d+) for operand \d+ which does not broadcast with previously seen size (\d+)", 2, 1),
    (r"size of the tensor \((\d+)\) must match the existing size \((\d+)\)", 2, 1),
    (r"size of the tensor \((\d+)\) must match the existing size \((\d+)\)", 1, 2),
    (r"input batch_size \((\d+)\) to match target batch_size \((\d+)\)", 2, 1),
)
_MULTIPLES = (
    (r"(\d+)\D.*(?:divisible by|multiple of)\D{0,30}(\d+)", 1, 2),
    (r"(\d+)\D{0,20}\d+\D.*(?:divisible by|multiple of)\D{0,30}(\d+)", 1, 2),
    (r"(?:divisible by|multiple of)\D{0,30}(\d+)\D.*?(\d+)", 2, 1),
    (r"input\.size\(-\d\)=(\d+) is not divisible by (\d+)", 1, 2),
    (r"input of shape \[\d+, (\d+).*?num_groups=(\d+)", 1, 2),
)
_UNFLATTENED = r"Provided sizes \[([-\d, ]+)\] don't multiply up to the size of dim -?\d+ \((\d+)\)"
# What the rank should be: groups are ranks, the last one first (batched after unbatched).
_RANKS = (
    r"Expected (\d) to (\d) dimensions",
    r"Expected (\d)D \(unbatched\) or (\d)D",
    r"expected (\d)D(?: or (\d)D)?(?: or (\d)D)? input",
    r"is not equal to len\(dims\) = (\d)",
    r"mode needs (\d)D",
    r"to be (\d)D(?: or (\d)D)?",
    r"must be an? (\d)-?D",
    r"Expected an? (\d)-?D",
    r"values to unpack \(expected (\d)",
    r"subscripts in the equation \((\d)\)",
    r"(\d)D or (\d)D \(batch mode\)",
    r"[Oo]nly (?:supports? )?(\d)D(?:, (\d)D)?",
    r"Padding size 2 is.*?(\d)D or (\d)D input: padding size = 2",
    r"Padding size 4 is.*?(\d)D or (\d)D input: padding size = 4",
    r"dimensions greater than (\d)",
    r"<= (\d) dim",
    r"(\d)-?(?:D|dim)",
)
_NAMED_SHAPE = re.compile(r"[(\[]((?:[A-Za-z_*]\w*|\d+)(?: ?, ?(?:[A-Za-z_]\w*|\d+|\*))+)[)\]]")  # "(*, 3, H, W)"
_HIGHER_RANK = (
    r"Dimension out of range|too many indices|tuple index out of range|dimensions of repeat dims"
    r"|len\(\) of a 0-d|list index out"
)
_WANTS_INT = (
    r"scalar types: Long|match target batch_size"
    r"|used as indices|must be long|dtype int|LongTensor|to be Long|integer tensors"
    r"|'(?:Float|Half)'|int64"
    r"|same dtype, but got Float|integer type|Long but|integral"
)
_WANTS_INDEX = r"single element can be converted|interpreted as an integer|list indices must be"
_WANTS_BOOL = r"[Bb]oolean|Boolean-type|dtype to be bool|to be bool|Bool but|supports bool"
_WANTS_FLOAT = (
    r"with a bool tensor|got Long|\(long int\)|'Long'|'Bool'|\(bool\)|found Long|[Ff]loating|but got Bool"
    r"|scalar type Float|to be float|complex|long int != float"
)
_WANTS_NUMBER = (
    r"must be (?:int|Number|float|bool|tuple of ints|str|None)\b.*not Tensor"
    r"|single element can be converted|cannot be interpreted as an integer"
    r"|Boolean value of Tensor|invalid combination of arguments|only one element tensors"
    r"|'Tensor' object is not callable"
    r"|only integer tensors of a single|must be real number, not Tensor|type must be tuple of ints"
    r"|must be tuple of ints|one element tensors|argument must be|got Tensor|unhashable"
)
_WANTS_NO_LIST = (
    r"'(?:list|tuple|dict)' object (?:has no attribute|is not callable)"
    r"|must be Tensor, not (?:list|tuple|dict)|got \((?:list|tuple|dict),"
)
_WANTS_LIST = r"must be tuple of Tensors, not Tensor|Tensors, but got Tensor|expected a (?:list|tuple)|not list"
_INDEX = r"(^|_)(idx|index|indices|ids?|i|j|numbers?|types?|labels?)(_|$)"
# Larger inputs, and some that a classifier's last pool (of 7 or 8) reduces to one window.
_LARGER = (
    {"H": 24, "W": 40, "L": 48, "T": 8},
    {"H": 28, "W": 26},
    {"H": 32, "W": 30},
    {"H": 32, "W": 64, "L": 96, "T": 16},
    {"H": 28, "W": 56},
    {"H": 56, "W": 52},
    {"H": 64, "W": 96, "L": 160, "T": 16},
    {"H": 112, "W": 104, "L": 512},
)
_NEAR = 4  # how far a size in a message may be from the one of an input that it comes from
NOT_ABOUT_SIZES = frozenset(
    {"TypeError", "AttributeError", "NameError", "UnboundLocalError", "ImportError", "SystemExit"}
)


def repairs(guess: Guess, failure: Failure, optional: Mapping[str, int]) -> Iterator[Guess]:
    """Guesses that may not fail so, best first. `optional`: name -> index of the parameters left to their defaults."""
    message = failure.message
    if re.search(_WANTS_NO_LIST, message) and (alone := list(_alone(guess, failure))):
        yield from alone
        return
    if failure.kind == "KeyError" and (key := re.fullmatch(r"'(\w+)'", message)):
        yield from _keyed(guess, key[1])
    yield from _types(guess, failure)
    if failure.kind in ("IndexError", "RuntimeError") and re.search("index out of range|out of bounds", message):
        yield from _smaller_indices(guess)
    yield from _ranks(guess, failure)
    yield from _multiples(guess, message)
    yield from _sizes(guess, message)
    yield from _pooled(guess, message)
    yield from _optional(guess, failure, optional)
    if failure.kind not in NOT_ABOUT_SIZES:
        yield from _larger(guess)
        yield from (guess.resized({"C": channels}) for channels in (3, 1) if "C" in guess.symbols())
    yield from _other_arguments(guess, failure)


def _blamed(guess: Guess, failure: Failure) -> list[tuple[int, int, TensorArg]]:
    """All tensors, those that the failing expression of `forward` names first."""
    return sorted(guess.tensors(), key=lambda found: found[2].name not in failure.names)


def _types(guess: Guess, failure: Failure) -> Iterator[Guess]:
    message = failure.message
    if re.search(_WANTS_LIST, message):
        for index, _, tensor in _blamed(guess, failure):
            if not isinstance(guess.args[index], ListArg):
                yield from lists(guess, index, tensor)
    for counted in re.finditer(r"len\((\w+)\) must be (\d)\b", message):
        yield from _counted(guess, counted[1], int(counted[2]))
    if re.search(_WANTS_INDEX, message):
        for index, _, tensor in _blamed(guess, failure):
            if index and not isinstance(guess.args[index], ListArg):
                yield from _numbers(guess, index, tensor.name)
    if re.search(_WANTS_BOOL, message):
        yield from _retyped(guess, failure, "bool")
    if re.search(_WANTS_INT, message):
        yield from _retyped(guess, failure, "int64")
    if re.search(_WANTS_FLOAT, message):
        yield from _retyped(guess, failure, "float32")
    if re.search(_WANTS_NUMBER, message):
        numeric = [(index, tensor) for index, _, tensor in _blamed(guess, failure) if tensor is guess.args[index]]
        for index, tensor in sorted(numeric, key=lambda found: found[0] == 0):  # the first one is mostly a tensor
            yield from _numbers(guess, index, tensor.name)


def lists(guess: Guess, index: int, tensor: TensorArg) -> Iterator[Guess]:
    """The tensor becomes a list of two, of three, of four, of one like it."""
    for count in (2, 3, 4, 1):
        items = tuple(replace(tensor, name=f"{tensor.name}{i}") for i in range(count))
        yield guess.with_arg(index, ListArg(items))


def _alone(guess: Guess, failure: Failure) -> Iterator[Guess]:
    """One tensor in place of a list, or of a dict that was called one."""
    for index, item, tensor in _blamed(guess, failure):
        arg = guess.args[index]
        if item == 0 and isinstance(arg, ListArg) and bool(arg.keys) == ("dict" in failure.message):
            name = tensor.name if arg.keys else tensor.name.removesuffix("0")
            yield guess.with_arg(index, replace(tensor, name=name))


def _keyed(guess: Guess, key: str) -> Iterator[Guess]:
    """Dicts with this key too, in place of those that stand for any."""
    for index, arg in enumerate(guess.args):
        if isinstance(arg, ListArg) and arg.keys and key not in arg.keys:
            known = {name: item for name, item in zip(arg.keys, arg.items, strict=True) if name not in ANY_KEYS}
            like = TensorArg(key, arg.items[0].dims)
            index_like = replace(like, dims=("L",), dtype="int64", high=2)
            for tensor in (index_like, like) if re.search(_INDEX, key) else (like, index_like):
                items = {**known, key: tensor}
                yield guess.with_arg(index, ListArg(tuple(items.values()), tuple(items)))


def _counted(guess: Guess, name: str, count: int) -> Iterator[Guess]:
    """The argument of this name becomes a list of so many tensors."""
    for index, item, tensor in guess.tensors():
        if item == 0 and count and tensor.name.removesuffix("0") == name:
            items = tuple(replace(tensor, name=f"{name}{i}") for i in range(count))
            yield guess.with_arg(index, ListArg(items))


def _numbers(guess: Guess, index: int, name: str) -> Iterator[Guess]:
    named = {"h": "H", "height": "H", "w": "W", "width": "W"}.get(name.lower())
    if named:
        yield planar(guess.with_arg(index, SizeArg(named)))
    if re.search(r"size|shape|hw|resolution", name.lower()):
        yield planar(guess.with_arg(index, SizesArg(("H", "W"))))
    for value in (None, 2, 1, True, False, 0.5):
        yield guess.with_arg(index, PlainArg(value))


def _retyped(guess: Guess, failure: Failure, dtype: str) -> Iterator[Guess]:
    several = len(list(guess.tensors())) > 1
    for index, item, tensor in _blamed(guess, failure):
        if tensor.dtype == dtype:
            continue
        if dtype != "int64":
            yield guess.with_tensor(index, item, replace(tensor, dtype=dtype, high=0))
            continue
        shapes = [tensor.dims]
        if several and index and "C" in tensor.dims[1:]:  # a class for each position
            shapes.insert(0 if "target" in failure.message else 1, tuple(dim for dim in tensor.dims if dim != "C"))
        if len(tensor.dims) > 2:
            shapes.append(("B", "L"))
        for dims in dict.fromkeys(shapes):
            yield guess.with_tensor(index, item, replace(tensor, dims=dims, dtype=dtype, high=8))


def _smaller_indices(guess: Guess) -> Iterator[Guess]:
    for index, item, tensor in guess.tensors():
        if tensor.dtype == "int64" and tensor.high > 1:
            for high in (tensor.high // 2, 2, 1):
                if high < tensor.high:
                    yield guess.with_tensor(index, item, replace(tensor, high=high))


def _ranks(guess: Guess, failure: Failure) -> Iterator[Guess]:
    wanted: list[int] = []
    for pattern in _RANKS:
        for match in re.finditer(pattern, failure.message):
            wanted += [int(group) for group in reversed(match.groups()) if group and int(group) in LAYOUTS]
    for match in _NAMED_SHAPE.finditer(failure.message):
        names = [item.strip() for item in match[1].split(",")]
        if len(names) in LAYOUTS and not all(name.isdigit() for name in names):
            wanted.append(len(names))
    if rows := re.search(r"cannot be multiplied \(1x(\d+) and", failure.message):
        for index, item, tensor in guess.tensors():
            if guess.shape(tensor) == (int(rows[1]),):
                yield guess.with_tensor(index, item, replace(tensor, dims=("B", "C")))
    if unlike := re.search(r"same number of dimensions: got (\d) and (\d)", failure.message):
        apart = abs(int(unlike[1]) - int(unlike[2]))
        others = [len(tensor.dims) for index, _, tensor in guess.tensors() if index]
        wanted += [rank for other in others for rank in (other - apart, other + apart) if rank in LAYOUTS]
    higher = re.search(_HIGHER_RANK, failure.message) is not None
    # Of a layer that takes batches: what it was given for one is a batch.
    higher |= bool(re.search(r"expected input\[1, ", failure.message)) and dict(guess.sizes)["B"] > 1
    fewer = re.search("too many values to unpack|number of sizes provided", failure.message) is not None
    if not wanted and not higher and not fewer:
        return
    for layout in (layout for rank in wanted for layout in LAYOUTS[rank][:1]):
        yield from _all_of(guess, layout)
    for index, item, tensor in _blamed(guess, failure):
        rank = len(tensor.dims)
        ranks = [*wanted, *((rank + 1, rank + 2) if higher else ()), *((rank - 1,) if fewer else ())]
        for other in dict.fromkeys(ranks):
            if other != rank and other in LAYOUTS:
                for layout in LAYOUTS[other]:
                    yield guess.with_tensor(index, item, replace(tensor, dims=layout))


def _all_of(guess: Guess, layout: tuple[str, ...]) -> Iterator[Guess]:
    """Several tensors, all of one rank, that get another rank together."""
    if len({len(tensor.dims) for _, _, tensor in guess.tensors()}) == 1 < len(list(guess.tensors())):
        for index, item, tensor in guess.tensors():
            guess = guess.with_tensor(index, item, replace(tensor, dims=layout))
        yield guess


def _multiples(guess: Guess, message: str) -> Iterator[Guess]:
    if match := re.search(_UNFLATTENED, message):
        lengths, size = [int(length) for length in match[1].split(",")], int(match[2])
        factor = math.prod(length for length in lengths if length > 0)
        if -1 in lengths and factor:
            yield from _changed(guess, size, -(-size // factor) * factor)
        yield from _changed(guess, size, factor)
        yield from _scaled(guess, size, factor)  # a token was taken away, or a stride divided it
    for pattern, was, of in _MULTIPLES:
        if match := re.search(pattern, message):
            size, factor = int(match[was]), int(match[of])
            up = -(-size // factor) * factor
            yield from _changed(guess, size, up)
            yield from _changed(guess, size, factor)


def _sizes(guess: Guess, message: str) -> Iterator[Guess]:
    pairs = []
    for pattern, was, wanted in _PAIRS:
        pairs += [(int(match[was]), int(match[wanted])) for match in re.finditer(pattern, message)]
    if match := re.search(r"sum exactly to (\d+).*split_sizes=\[([\d, ]+)\]", message):
        pairs.append((int(match[1]), sum(map(int, match[2].split(",")))))
    for was, wanted in pairs:
        yield from _changed(guess, was, wanted)
    for was, wanted in pairs:
        yield from _scaled(guess, was, wanted)
    numbers = [int(text) for text in re.findall(r"\d+", message) if len(text) < 7]
    if 2 <= len(numbers) <= 12:
        sizes = {guess.size(dim) for _, _, tensor in guess.tensors() for dim in tensor.dims}
        for was in dict.fromkeys(n for n in numbers if n in sizes):
            for wanted in dict.fromkeys(numbers):
                yield from _changed(guess, was, wanted)
    if match := re.search(r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)", message):
        yield from _reshaped(guess, [int(n) for n in match[1].split(",")], int(match[2]))


def _changed(guess: Guess, was: int, wanted: int) -> Iterator[Guess]:
    """What has the size `was` gets the size `wanted`, or becomes one with what has it."""
    if was == wanted or wanted < 1:
        return
    sizes = dict(guess.sizes)
    used = guess.symbols()
    here = [symbol for symbol in used if sizes[symbol] == was]
    there = [symbol for symbol in used if sizes[symbol] == wanted]
    for symbol in here:
        for other in there:
            if not any({symbol, other} <= set(t.dims) for _, _, t in guess.tensors()) or {symbol, other} == {"H", "W"}:
                yield guess.merged(symbol, other)
        holders = [(i, k, t) for i, k, t in guess.tensors() if symbol in t.dims]
        if symbol[0] == "C" or (wanted > 1 and symbol != "B"):  # points have two or three coordinates
            yield guess.resized({symbol: wanted})
        if len(holders) > 1 or any(t.dims.count(symbol) > 1 for _, _, t in holders):
            for index, item, tensor in holders:
                yield guess.split(index, item, tensor.dims.index(symbol), wanted)


def _scaled(guess: Guess, was: int, wanted: int) -> Iterator[Guess]:
    """The size that was is a multiple or a fraction of a symbol's, or of a product of some."""
    if was < 1 or wanted < 1:
        return
    sizes = dict(guess.sizes)
    for symbol in guess.symbols():
        size = sizes[symbol]
        if (
            symbol != "B"
            and (was % size == 0 or size % was == 0)
            and (size * wanted) % was == 0
            and size * wanted > (was if symbol[0] == "C" else 3 * was)
        ):
            yield guess.resized({symbol: size * wanted // was})
    for symbol in guess.symbols():  # something was added to it, or taken away
        if 0 < abs(was - sizes[symbol]) <= _NEAR and sizes[symbol] + wanted - was > 3:
            yield guess.resized({symbol: sizes[symbol] + wanted - was})
    plane = sizes.get("H", 0) * sizes.get("W", 0)
    if "H" in guess.symbols() and "W" in guess.symbols() and was == plane + 1:  # a token for the class
        side = round((wanted - 1) ** 0.5)
        if side > 1 and side * side == wanted - 1:
            yield guess.resized({"H": side, "W": side})
    if plane and "H" in guess.symbols() and plane * wanted % was == 0:
        side = round((plane * wanted // was) ** 0.5)
        if side * side * was == plane * wanted:
            yield guess.resized({"H": side, "W": side})


def _reshaped(guess: Guess, target: list[int], total: int) -> Iterator[Guess]:
    known = 1
    for size in target:
        known *= max(size, 1)
    if known and -1 not in target and known != total:
        yield from _scaled(guess, total, known)
    if any(isinstance(arg, SizeArg | SizesArg) for arg in guess.args):
        yield planar(guess)
    for index, item, tensor in guess.tensors():  # only its first axes are wanted
        shape = guess.shape(tensor)
        for rank in range(1, len(shape)):
            if math.prod(shape) == total and math.prod(shape[:rank]) == known:
                yield guess.with_tensor(index, item, replace(tensor, dims=tensor.dims[:rank]))


def _pooled(guess: Guess, message: str) -> Iterator[Guess]:
    """A pool with a fixed kernel gets exactly one window, as at the end of a classifier."""
    match = re.search(r"input size: \(\d+x(\d+)x(\d+)\)\. Calculated output size: \(\d+x(-?\d+)x(-?\d+)\)", message)
    sizes = dict(guess.sizes)
    if match is None or not {"H", "W"} <= set(guess.symbols()):
        return
    height, width, pooled_height, _ = (int(group) for group in match.groups())
    kernel = height - pooled_height + 1
    if height > 0 and width > 0 and kernel > 0:
        down = 1 << max(round(math.log2(sizes["W"] / width)), 0)
        yield guess.resized({"H": kernel * down, "W": kernel * down - down // 2})
        yield guess.resized({"H": kernel * down, "W": kernel * down})
        yield guess.resized({"H": kernel * 2 * down, "W": kernel * 2 * down - down})


def _optional(guess: Guess, failure: Failure, optional: Mapping[str, int]) -> Iterator[Guess]:
    """A parameter that was left to its default of None is needed after all."""
    if "None" not in failure.message and failure.kind != "AssertionError":
        return
    left = {name for name, index in optional.items() if index >= len(guess.args)}
    named = [name for name in failure.names if name in left] or sorted(left)
    for name in named[:3]:
        index = optional[name]
        missing = tuple(PlainArg(None) for _ in range(len(guess.args), index))
        for layout in (LAYOUTS[3][0], LAYOUTS[2][0], LAYOUTS[4][0], LAYOUTS[1][0]):
            yield replace(guess, args=(*guess.args, *missing, TensorArg(name, layout)))


def _larger(guess: Guess) -> Iterator[Guess]:
    """All that is not larger already."""
    sizes = dict(guess.sizes)
    symbols = [symbol for symbol in guess.symbols() if sizes[symbol] <= SIZES[0].get(symbol, 0)]
    for image in _LARGER:
        changes = {s: size for s, size in image.items() if s in symbols and sizes[s] < size}
        if changes:
            yield guess.resized(changes)


def _other_arguments(guess: Guess, failure: Failure) -> Iterator[Guess]:
    """Whatever else an argument may be; the first one last."""
    for index, item, tensor in reversed(list(guess.tensors())):
        for rank in (2, 3, 1, 4):
            for layout in LAYOUTS[rank][:2]:
                if tensor.dims != layout and len(tensor.dims) != rank:
                    yield guess.with_tensor(index, item, replace(tensor, dims=layout))
        if tensor.dtype == "float32" and re.search(r"index|Long|int", failure.message):
            yield guess.with_tensor(index, item, replace(tensor, dtype="int64", high=8))
        if index and not isinstance(guess.args[index], ListArg):
            yield from _numbers(guess, index, tensor.name)
