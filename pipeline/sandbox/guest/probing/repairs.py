"""Better guesses from the message of a failed call.

The sizes of a guess are pairwise distinct, so a size in an error message belongs to one symbol. Most messages also
contain the size that was expected. Few patterns are specific to one operator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from .guarded_call import Failure
from .guess import (
    ANY_KEYS,
    LAYOUTS,
    MAX_ELEMENTS,
    SIZES,
    Guess,
    ListArg,
    PlainArg,
    SizeArg,
    SizesArg,
    TensorArg,
    planar,
)

# (pattern with two sizes, which of its groups is the actual size and which is the expected one). "12": group 1 is the
# actual size. Two orders are both tried.
_MISMATCHES: tuple[tuple[str, str], ...] = (
    (r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", "12"),
    (r"to have (\d+) channels, but got (\d+)", "21"),
    (r"should contain (\d+) elements not (\d+)", "12"),
    (r"normalized_shape=\[(?:[\d, ]+, )?(\d+)\].*size\[(?:[\d, ]+, )?(\d+)\]", "21"),
    (r"Expected size (\d+) but got size (\d+)", "21 12"),
    (r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", "12 21"),
    (r"[Ee]xpected (\d+),? (?:but )?got (\d+)", "21"),
    (r"got (\d+),? (?:but )?expected (\d+)", "12"),
    (r"dimension of (\d+),? but got (\d+)", "21"),
    (r"to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]", "21 12"),
    (r"to be: \[(\d+), \d+\] but got: \[(\d+), \d+\]", "21 12"),
    (r"num_features \((\d+)\), but got: (\d+)", "21"),
    (r"parameter numbers = (\d+) and channel size = (\d+)", "21"),
    (r"vector of size .*?weight of shape \[(\d+)\] and input of shape \[\d+, (\d+)", "21"),
    (r"has size (\d+) for operand \d+ which does not broadcast with previously seen size (\d+)", "12 21"),
    (r"size of the tensor \((\d+)\) must match the existing size \((\d+)\)", "21 12"),
    (r"input batch_size \((\d+)\) to match target batch_size \((\d+)\)", "21"),
)
# (pattern with a size and a factor that should divide it, which group is the size and which is the factor)
_INDIVISIBLE: tuple[tuple[str, str], ...] = (
    (r"(\d+)\D.*(?:divisible by|multiple of)\D{0,30}(\d+)", "12"),
    (r"(\d+)\D{0,20}\d+\D.*(?:divisible by|multiple of)\D{0,30}(\d+)", "12"),
    (r"(?:divisible by|multiple of)\D{0,30}(\d+)\D.*?(\d+)", "21"),
    (r"input\.size\(-\d\)=(\d+) is not divisible by (\d+)", "12"),
    (r"input of shape \[\d+, (\d+).*?num_groups=(\d+)", "12"),
)
# Patterns with expected ranks. The last group comes first, since the batched rank stands after the unbatched one.
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
_SHAPE = r"[(\[](?:\d+, ?)+\d*[)\]]"  # "(2, 16)", "[2, 16]", "(2,)"
# "input with spatial dimensions of [20] and output size of torch.Size([8, 10])", "scale_factor of shape (2, 2)"
_RESIZED = r"got input with spatial dimensions of .* and [\w ]+ of (?:shape )?(?:torch\.Size\()?[(\[]([\d., ]+)[)\]]"
_NAMED_SHAPE = re.compile(r"[(\[]((?:[A-Za-z_*]\w*|\d+)(?: ?, ?(?:[A-Za-z_]\w*|\d+|\*))+)[)\]]")  # "(*, 3, H, W)"
_HIGHER_RANK = (
    r"Dimension out of range|too many indices|tuple index out of range|dimensions of repeat dims"
    r"|len\(\) of a 0-d|list index out"
)
_LOWER_RANK = "too many values to unpack|number of sizes provided"
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
_WANTS_DICT = r"'Tensor' object has no attribute '(?:items|keys|values|get)'|must be a mapping, not Tensor"
_LENGTH = r"len\((\w+)\) must be (\d)\b"
_WANTS_RANGE = (
    r"between 0 and 1|(?:>=?|(?:greater|larger)(?: than)?(?: or equal)?(?: to)?|at least) ?0\b|in \[0"
    r"|positive|probabilit|negative (?:values?|inputs?|elements?)"
)
_UNFLATTENED = r"Provided sizes \[([-\d, ]+)\] don't multiply up to the size of dim -?\d+ \((\d+)\)"
_POOL_SIZES = r"input size: \(\d+x(\d+)x(\d+)\)\. Calculated output size: \(\d+x(-?\d+)x-?\d+\)"
_INDEX_NAME = r"(^|_)(idx|index|indices|ids?|i|j|numbers?|types?|labels?)(_|$)"
# Larger inputs. Some of them leave one window to the last pool of a classifier, whose kernel is 7 or 8.
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
_NEAR = 4  # largest difference between a size in a message and the size of the input that it derives from
NOT_ABOUT_SIZES = frozenset(
    {"TypeError", "AttributeError", "NameError", "UnboundLocalError", "ImportError", "SystemExit"}
)


def repairs(guess: Guess, failure: Failure, optional: Mapping[str, int]) -> Iterator[Guess]:
    """Guesses that may avoid the failure, best first.

    Args:
        optional: name -> index of the parameters that are left to their default of None.
    """
    message = failure.message
    if re.search(_WANTS_NO_LIST, message) and (alone := list(_one_tensor(guess, failure))):
        yield from alone
        return
    for pattern, repair in _REPAIRS:
        if re.search(pattern, message):
            yield from repair(guess, failure)
    if re.search("Domain|Range", failure.kind):
        yield from _in_range(guess, failure)
    yield from _optional(guess, failure, optional)
    if failure.kind not in NOT_ABOUT_SIZES:
        yield from _larger(guess)
        yield from (guess.resized({"C": channels}) for channels in (3, 1) if "C" in guess.symbols())
    yield from _other_arguments(guess, failure)


def _blamed(guess: Guess, failure: Failure) -> list[tuple[int, int, TensorArg]]:
    """All tensors; those that the failing expression names come first."""
    return sorted(guess.tensors(), key=lambda found: found[2].name not in failure.names)


def _as_lists(guess: Guess, failure: Failure) -> Iterator[Guess]:
    for index, _, tensor in _blamed(guess, failure):
        if not isinstance(guess.args[index], ListArg):
            yield from lists(guess, index, tensor)


def lists(guess: Guess, index: int, tensor: TensorArg) -> Iterator[Guess]:
    """Guesses with a list of two, three, four or one such tensors in place of the tensor."""
    for count in (2, 3, 4, 1):
        yield guess.with_arg(index, _list(tensor, tensor.name, count))


def _list(tensor: TensorArg, name: str, count: int) -> ListArg:
    return ListArg(tuple(replace(tensor, name=f"{name}{i}") for i in range(count)))


def _one_tensor(guess: Guess, failure: Failure) -> Iterator[Guess]:
    """Guesses with one tensor in place of a list or a dict, whichever the message is about."""
    for index, item, tensor in _blamed(guess, failure):
        arg = guess.args[index]
        if item == 0 and isinstance(arg, ListArg) and bool(arg.keys) == ("dict" in failure.message):
            name = tensor.name if arg.keys else tensor.name.removesuffix("0")
            yield guess.with_arg(index, replace(tensor, name=name))


def _missing_key(guess: Guess, failure: Failure) -> Iterator[Guess]:
    """Guesses whose dicts have the missing key too, in place of keys that stand for unknown ones."""
    key = failure.message.strip("'")
    for index, arg in enumerate(guess.args if failure.kind == "KeyError" else ()):
        if isinstance(arg, ListArg) and arg.keys and key not in arg.keys:
            known = {name: item for name, item in zip(arg.keys, arg.items, strict=True) if name not in ANY_KEYS}
            values = TensorArg(key, arg.items[0].dims)
            indices = replace(values, dims=("L",), dtype="int64", high=2)
            for tensor in (indices, values) if re.search(_INDEX_NAME, key) else (values, indices):
                items = {**known, key: tensor}
                yield guess.with_arg(index, ListArg(tuple(items.values()), tuple(items)))


def _as_dicts(guess: Guess, failure: Failure) -> Iterator[Guess]:
    """Guesses with a dict of two tensors in place of a tensor, and with an empty dict."""
    for index, _, tensor in _blamed(guess, failure):
        if guess.args[index] is tensor:
            yield guess.with_arg(index, ListArg((tensor, tensor), ANY_KEYS))
            yield guess.with_arg(index, PlainArg({}))


def _list_of_length(guess: Guess, failure: Failure) -> Iterator[Guess]:
    for match in re.finditer(_LENGTH, failure.message):
        name, count = match[1], int(match[2])
        for index, item, tensor in guess.tensors():
            if item == 0 and count and tensor.name.removesuffix("0") == name:
                yield guess.with_arg(index, _list(tensor, name, count))


def _index_as_number(guess: Guess, failure: Failure) -> Iterator[Guess]:
    for index, _, tensor in _blamed(guess, failure):
        if index and not isinstance(guess.args[index], ListArg):
            yield from _numbers(guess, index, tensor.name)


def _tensor_as_number(guess: Guess, failure: Failure) -> Iterator[Guess]:
    tensors = [(index, tensor) for index, _, tensor in _blamed(guess, failure) if tensor is guess.args[index]]
    for index, tensor in sorted(tensors, key=lambda found: found[0] == 0):  # the first argument is mostly a tensor
        yield from _numbers(guess, index, tensor.name)


def _numbers(guess: Guess, index: int, name: str) -> Iterator[Guess]:
    """Guesses with a size or a constant as this argument."""
    symbol = {"h": "H", "height": "H", "w": "W", "width": "W"}.get(name.lower())
    if symbol:
        yield planar(guess.with_arg(index, SizeArg(symbol)))
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
            yield guess.with_tensor(index, item, dtype=dtype, high=0)
            continue
        shapes = [tensor.dims]
        if several and index and "C" in tensor.dims[1:]:  # a class for each position
            shapes.insert(0 if "target" in failure.message else 1, tuple(dim for dim in tensor.dims if dim != "C"))
        if len(tensor.dims) > 2:
            shapes.append(("B", "L"))
        for dims in dict.fromkeys(shapes):
            yield guess.with_tensor(index, item, dims=dims, dtype=dtype, high=8)


def in_unit_range(guess: Guess, names: Collection[str] = ()) -> Iterator[Guess]:
    """Guesses with numbers from 0 to 1 in place of normal numbers: for each tensor, first those named, then for all."""
    floats = [each for each in guess.tensors() if each[2].dtype == "float32" and not each[2].high]
    floats.sort(key=lambda each: each[2].name not in names)
    for chosen in (*([each] for each in floats), floats):
        changed = guess
        for index, item, _ in chosen:
            changed = changed.with_tensor(index, item, high=1)
        yield changed


def _in_range(guess: Guess, failure: Failure) -> Iterator[Guess]:
    yield from in_unit_range(guess, failure.names)


def _smaller_indices(guess: Guess, failure: Failure) -> Iterator[Guess]:
    for index, item, tensor in guess.tensors() if failure.kind in ("IndexError", "RuntimeError") else ():
        if tensor.dtype == "int64" and tensor.high > 1:
            for high in (tensor.high // 2, 2, 1):
                if high < tensor.high:
                    yield guess.with_tensor(index, item, high=high)


def _ranks(guess: Guess, failure: Failure) -> Iterator[Guess]:
    message = failure.message
    expected = [int(g) for p in _RANKS for match in re.finditer(p, message) for g in reversed(match.groups()) if g]
    for match in _NAMED_SHAPE.finditer(message):
        names = [item.strip() for item in match[1].split(",")]
        if not all(name.isdigit() for name in names):
            expected.append(len(names))
    if resized := re.search(_RESIZED, message):
        expected.append(2 + len(re.findall(r"[\d.]+", resized[1])))
    if rows := re.search(r"cannot be multiplied \(1x(\d+) and", message):
        for index, item, tensor in guess.tensors():
            if guess.shape(tensor) == (int(rows[1]),):
                yield guess.with_tensor(index, item, dims=("B", "C"))
    if unlike := re.search(r"same number of dimensions: got (\d) and (\d)", message):
        apart = abs(int(unlike[1]) - int(unlike[2]))
        expected += [len(t.dims) + step for index, _, t in guess.tensors() if index for step in (-apart, apart)]
    expected = [rank for rank in expected if rank in LAYOUTS]
    is_higher = re.search(_HIGHER_RANK, message) is not None
    # A layer that takes batches got one unbatched input.
    is_higher |= "expected input[1, " in message and dict(guess.sizes)["B"] > 1
    is_lower = re.search(_LOWER_RANK, message) is not None
    for rank in expected:
        yield from _all_of_layout(guess, LAYOUTS[rank][0])
    for index, item, tensor in _blamed(guess, failure) if expected or is_higher or is_lower else ():
        rank = len(tensor.dims)
        ranks = [*expected, *((rank + 1, rank + 2) if is_higher else ()), *((rank - 1,) if is_lower else ())]
        for other in dict.fromkeys(ranks):
            for layout in LAYOUTS.get(other, ()) if other != rank else ():
                yield guess.with_tensor(index, item, dims=layout)


def _as_required(guess: Guess, failure: Failure) -> Iterator[Guess]:
    """If the message contains a tensor's whole shape, guesses that give the tensor each other shape in the message."""
    texts = re.findall(_SHAPE, failure.message)
    shapes = dict.fromkeys(tuple(map(int, re.findall(r"\d+", text))) for text in texts)
    for index, item, tensor in _blamed(guess, failure):
        if (own := guess.shape(tensor)) in shapes:
            for shape in shapes:
                if shape != own and 0 not in shape and math.prod(shape) <= MAX_ELEMENTS:
                    yield _with_shape(guess, index, item, shape)


def _with_shape(guess: Guess, index: int, item: int, shape: Sequence[int]) -> Guess:
    """The guess with another shape for one tensor: sizes of the same axis keep their symbols, others get those of
    other tensors with these sizes, or new ones.
    """
    own = next(tensor.dims for i, k, tensor in guess.tensors() if (i, k) == (index, item))
    of_others = [dim for i, k, tensor in guess.tensors() if (i, k) != (index, item) for dim in tensor.dims]
    symbols = {guess.size(dim): dim for dim in reversed(of_others)}
    dims, added = list[str](), dict[str, int]()
    for axis, size in enumerate(shape):
        if axis < len(own) and guess.size(own[axis]) == size:
            dims.append(own[axis])
        else:
            dims.append(symbols.setdefault(size, f"S{index}_{item}_{size}"))
            added |= {dims[-1]: size} if dims[-1].startswith("S") else {}
    return guess.with_tensor(index, item, dims=tuple(dims)).resized(added)


def _all_of_layout(guess: Guess, layout: tuple[str, ...]) -> Iterator[Guess]:
    """The guess with another layout for all tensors together, if there are several and all of one rank."""
    tensors = list(guess.tensors())
    if len(tensors) > 1 and len({len(tensor.dims) for _, _, tensor in tensors}) == 1:
        for index, item, _ in tensors:
            guess = guess.with_tensor(index, item, dims=layout)
        yield guess


def _multiples(guess: Guess, failure: Failure) -> Iterator[Guess]:
    if match := re.search(_UNFLATTENED, failure.message):
        lengths, size = [int(length) for length in match[1].split(",")], int(match[2])
        factor = math.prod(length for length in lengths if length > 0)
        if -1 in lengths and factor:
            yield from _changed(guess, size, up_to_multiple(size, factor))
        yield from _changed(guess, size, factor)
        yield from _scaled(guess, size, factor)  # a token was taken away, or a stride divided it
    for pattern, order in _INDIVISIBLE:
        if match := re.search(pattern, failure.message):
            size, factor = _in_order(match, order)
            yield from _changed(guess, size, up_to_multiple(size, factor))
            yield from _changed(guess, size, factor)


def up_to_multiple(size: int, factor: int) -> int:
    """The size, or the next multiple of the factor."""
    return -(-size // factor) * factor


def _in_order(match: re.Match[str], order: str) -> tuple[int, int]:
    return int(match[int(order[0])]), int(match[int(order[1])])


def _sizes(guess: Guess, failure: Failure) -> Iterator[Guess]:
    message = failure.message
    pairs: list[tuple[int, int]] = []
    for pattern, orders in _MISMATCHES:
        for order in orders.split():
            pairs += [_in_order(match, order) for match in re.finditer(pattern, message)]
    if match := re.search(r"sum exactly to (\d+).*split_sizes=\[([\d, ]+)\]", message):
        pairs.append((int(match[1]), sum(map(int, match[2].split(",")))))
    for actual, expected in pairs:
        yield from _changed(guess, actual, expected)
    for actual, expected in pairs:
        yield from _scaled(guess, actual, expected)
    numbers = [int(text) for text in re.findall(r"\d+", message) if len(text) < 7]
    if 2 <= len(numbers) <= 12:
        sizes = {guess.size(dim) for _, _, tensor in guess.tensors() for dim in tensor.dims}
        for actual in dict.fromkeys(n for n in numbers if n in sizes):
            for expected in dict.fromkeys(numbers):
                yield from _changed(guess, actual, expected)
    if match := re.search(r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)", message):
        yield from _reshaped(guess, [int(n) for n in match[1].split(",")], int(match[2]))


def _changed(guess: Guess, actual: int, expected: int) -> Iterator[Guess]:
    """Guesses in which a symbol of the actual size gets the expected size, or is merged with a symbol that has it."""
    if actual == expected or expected < 1:
        return
    sizes = dict(guess.sizes)
    used = guess.symbols()
    for symbol in (symbol for symbol in used if sizes[symbol] == actual):
        for other in (other for other in used if sizes[other] == expected):
            if {symbol, other} == {"H", "W"} or not any({symbol, other} <= set(t.dims) for _, _, t in guess.tensors()):
                yield guess.merged(symbol, other)
        if symbol[0] == "C" or (expected > 1 and symbol != "B"):  # points have two or three coordinates
            yield guess.resized({symbol: expected})
        holders = [(i, k, t) for i, k, t in guess.tensors() if symbol in t.dims]
        if len(holders) > 1 or any(t.dims.count(symbol) > 1 for _, _, t in holders):
            for index, item, tensor in holders:
                yield guess.split(index, item, tensor.dims.index(symbol), expected)


def _scaled(guess: Guess, actual: int, expected: int) -> Iterator[Guess]:
    """Guesses in which a size that the actual size derives from changes with it.

    The actual size may be a multiple or a fraction of the size, may differ from it by a small number, or may be the
    number of positions of a plane.
    """
    if actual < 1 or expected < 1:
        return
    sizes = dict(guess.sizes)
    symbols = guess.symbols()
    for symbol in symbols:
        size = sizes[symbol]
        if (
            symbol != "B"
            and size > 0
            and (actual % size == 0 or size % actual == 0)
            and (size * expected) % actual == 0
            and size * expected > (actual if symbol[0] == "C" else 3 * actual)
        ):
            yield guess.resized({symbol: size * expected // actual})
    for symbol in symbols:
        if 0 < abs(actual - sizes[symbol]) <= _NEAR and sizes[symbol] + expected - actual > 3:
            yield guess.resized({symbol: sizes[symbol] + expected - actual})
    plane = sizes.get("H", 0) * sizes.get("W", 0)
    if {"H", "W"} <= {*symbols} and actual == plane + 1:  # a token for the class
        yield from _square(guess, expected - 1, least=2)
    if plane and "H" in symbols and plane * expected % actual == 0:
        yield from _square(guess, plane * expected // actual)


def _square(guess: Guess, positions: int, least: int = 1) -> Iterator[Guess]:
    """The guess with a square plane of this many positions, if there is one."""
    side = round(max(positions, 0) ** 0.5)
    if side >= least and side * side == positions:
        yield guess.resized({"H": side, "W": side})


def _reshaped(guess: Guess, target: Sequence[int], total: int) -> Iterator[Guess]:
    known = math.prod(max(size, 1) for size in target)
    if -1 not in target and known != total:
        yield from _scaled(guess, total, known)
    if any(isinstance(arg, SizeArg | SizesArg) for arg in guess.args):
        yield planar(guess)
    for index, item, tensor in guess.tensors():  # only its first axes are expected
        shape = guess.shape(tensor)
        for rank in range(1, len(shape)):
            if math.prod(shape) == total and math.prod(shape[:rank]) == known:
                yield guess.with_tensor(index, item, dims=tensor.dims[:rank])


def _pooled(guess: Guess, failure: Failure) -> Iterator[Guess]:
    """Guesses that leave exactly one window to a pool with a fixed kernel, as at the end of a classifier."""
    match = re.search(_POOL_SIZES, failure.message)
    sizes = dict(guess.sizes)
    if match is None or not {"H", "W"} <= set(guess.symbols()):
        return
    height, width, pooled_height = (int(group) for group in match.groups())
    kernel = height - pooled_height + 1
    if height > 0 and width > 0 and kernel > 0:
        down = 1 << max(round(math.log2(sizes["W"] / width)), 0)
        yield guess.resized({"H": kernel * down, "W": kernel * down - down // 2})
        yield guess.resized({"H": kernel * down, "W": kernel * down})
        yield guess.resized({"H": kernel * 2 * down, "W": kernel * 2 * down - down})


def _optional(guess: Guess, failure: Failure, optional: Mapping[str, int]) -> Iterator[Guess]:
    """Guesses with a tensor for a parameter that was left to its default of None."""
    if "None" not in failure.message and failure.kind != "AssertionError":
        return
    left = {name for name, index in optional.items() if index >= len(guess.args)}
    blamed = [name for name in failure.names if name in left] or sorted(left)
    for name in blamed[:3]:
        missing = tuple(PlainArg(None) for _ in range(len(guess.args), optional[name]))
        for rank in (3, 2, 4, 1):
            yield replace(guess, args=(*guess.args, *missing, TensorArg(name, LAYOUTS[rank][0])))


def _larger(guess: Guess) -> Iterator[Guess]:
    """Guesses with larger sizes, except for symbols that were enlarged before."""
    sizes = dict(guess.sizes)
    symbols = [symbol for symbol in guess.symbols() if sizes[symbol] <= SIZES[0].get(symbol, 0)]
    for table in _LARGER:
        if changes := {s: size for s, size in table.items() if s in symbols and sizes[s] < size}:
            yield guess.resized(changes)


def _other_arguments(guess: Guess, failure: Failure) -> Iterator[Guess]:
    """Guesses with any other rank, type or constant as one argument; the first argument comes last."""
    for index, item, tensor in reversed(list(guess.tensors())):
        for rank in (2, 3, 1, 4):
            for layout in LAYOUTS[rank][:2] if rank != len(tensor.dims) else ():
                yield guess.with_tensor(index, item, dims=layout)
        if tensor.dtype == "float32" and re.search(r"index|Long|int", failure.message):
            yield guess.with_tensor(index, item, dtype="int64", high=8)
        if index and not isinstance(guess.args[index], ListArg):
            yield from _numbers(guess, index, tensor.name)


# (pattern in the message, repair), best first
_REPAIRS: tuple[tuple[str, Callable[[Guess, Failure], Iterator[Guess]]], ...] = (
    (r"^'\w+'$", _missing_key),
    (_WANTS_DICT, _as_dicts),
    (_WANTS_LIST, _as_lists),
    (_LENGTH, _list_of_length),
    (_WANTS_INDEX, _index_as_number),
    (_WANTS_BOOL, partial(_retyped, dtype="bool")),
    (_WANTS_INT, partial(_retyped, dtype="int64")),
    (_WANTS_FLOAT, partial(_retyped, dtype="float32")),
    (_WANTS_NUMBER, _tensor_as_number),
    (_WANTS_RANGE, _in_range),
    ("index out of range|out of bounds", _smaller_indices),
    (rf"{_SHAPE} must be {_SHAPE}|(?:should|must) be\D*{_SHAPE}.*{_SHAPE}", _as_required),
    ("", _ranks),
    ("", _multiples),
    ("", _sizes),
    (_POOL_SIZES, _pooled),
)
