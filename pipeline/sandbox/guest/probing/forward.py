"""Calls of `forward` to begin a search with, from the source's text and the module's layers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import prod

from torch import nn

from .axes import Naming, dtype_of, named
from .guess import ANY_KEYS, LAYOUTS, SIZES, Arg, Guess, ListArg, PlainArg, SizeArg, SizesArg, TensorArg, planar
from .kinds import kind_of, snake
from .layer_hints import Evidence, evidence
from .parameters import Input
from .repairs import lists

_TOKENS = re.compile(
    r"(^|_)(input_ids|ids?|idx|index|indices|tokens?|token_ids|labels?|classes|class_labels|words|text|position_ids)$"
)
_EDGES = re.compile(r"^(edge_index|edges|edge_idx)$")
_LENGTHS = re.compile(r"(^|_)(len|lens|lengths?)$")
_MASK = re.compile(r"mask")
_TIME = re.compile(r"^(t|time|times|timesteps?|noise_levels?|sigmas?|step|steps|log_snr|gamma)$")
_EMBEDDING = re.compile(
    r"(^|_)(t|time|timestep|step|noise|style|class|speaker|spk|diffusion)_?(emb|embed|embedding)s?$|^(emb|style)$"
)
_FLOW = re.compile(r"(^|_)flow$")
_FLAG = re.compile(r"^(return|is|use|need|with|do|train|training|deterministic|verbose|inverse|reverse)(_|$)")
_SIZE_PAIR = re.compile(
    r"^(x_size|hw|hw_shape|hw_size|resolution|spatial_shapes?|spatial_size|size|target_size|grid_size|"
    r"(in|input|out|output|image|img|feat|feature)_(size|shape|resolution))$"
)
_SIZES = re.compile(r"(typing\.)?(list|tuple|List|Tuple|Sequence)\[int(, ?int)?\]|(torch\.)?Size\b")
_PLANE = {"h": "H", "height": "H", "w": "W", "width": "W"}
_HINTS = {"image": "HW", "map": "HW", "length": "L", "frames": "T", "window": "L"}  # kind of parameter -> symbols
_LAST_LAYOUTS = (
    *(LAYOUTS[4][0], LAYOUTS[3][0], LAYOUTS[2][0], LAYOUTS[3][1], LAYOUTS[5][0], LAYOUTS[1][1], LAYOUTS[4][1]),
)


def hints(values: Mapping[str, str]) -> dict[str, int]:
    """Symbol -> size, from what the constructor was given: `image_size=32` -> H and W of 32."""
    found: dict[str, int] = {}
    for name, text in values.items():
        kind = kind_of(name).name
        if kind in ("inner", "size") and text.isdigit():
            found.setdefault("C", int(text))
        if kind not in _HINTS or not re.fullmatch(r"[(\[]?\d+(, \d+)*[)\]]?", text):
            continue
        numbers = [int(number) for number in re.findall(r"\d+", text)]
        if kind == "window":  # (windows, tokens of a window, channels)
            numbers = [prod(numbers if len(numbers) > 1 else numbers * 2)]
        symbols = _HINTS[kind]
        for symbol, size in zip(symbols, numbers * len(symbols) if len(numbers) == 1 else numbers, strict=False):
            found.setdefault(symbol, size)
    return {symbol: size for symbol, size in found.items() if 1 < size <= 256}


def starts(module: nn.Module, inputs: Sequence[Input], values: Mapping[str, str]) -> Iterator[Guess]:
    """Guesses at the required arguments, best first; `values` are the sources of the constructor's arguments."""
    found = list(evidence(module))
    required = [i for i in inputs if i.required]
    hinted = hints(values)
    features = next((e.features for e in found if e.features), SIZES[0]["C"])
    sizes = tuple(sorted({**SIZES[0], "C": features}.items()))
    if any(e.features for e in found):
        hinted = {symbol: size for symbol, size in hinted.items() if symbol != "C"}
    yield from _as_named(required, found, features, values)
    graph = any(_EDGES.search(i.name) for i in required)
    for layout in _layouts(required[0], found, graph):
        args = tuple(_argument(i, layout, required, found) for i in required)
        guess = Guess(args, sizes)
        if any(_may_be_none(i) for i in required[1:]):
            yield replace(guess, args=tuple(_without(i, a, required) for i, a in zip(required, args, strict=True)))
        if "H" not in layout and any(isinstance(arg, SizeArg | SizesArg) for arg in args):
            yield planar(guess)
        yield from _in_lists(guess, [i for i, item in enumerate(required) if _is_list(item)])
        yield guess
        if guess.resized(hinted).key() != guess.key():
            yield guess.resized(hinted)
        yield from _in_lists(guess, [i for i, item in enumerate(required) if item.usage.indexed and not _is_list(item)])


def _as_named(
    required: Sequence[Input], found: Sequence[Evidence], features: int, values: Mapping[str, str]
) -> Iterator[Guess]:
    """The call as the source names the axes of its tensors, if it names those of any."""
    naming = Naming({name: int(text) for name, text in values.items() if text.isdigit()}, features)
    axes = [_axes(item, required) for item in required]
    named_dims = [naming.dims(names) for names in axes]
    if not any(axes):
        return
    first = named_dims[0] or next(_layouts(required[0], found, graph=False))
    args: list[Arg] = []
    for item, dims in zip(required, named_dims, strict=True):
        arg = _argument(item, first, required, found)
        if isinstance(arg, TensorArg) and dims:
            dtype = dtype_of(item.entry) or arg.dtype
            high = 0 if dtype != "int64" else arg.high or 8
            arg = replace(arg, dims=dims, dtype=dtype, high=high)
        args.append(_without(item, arg, required))
    yield Guess(tuple(args), tuple(sorted({**SIZES[0], "C": features, **naming.sizes}.items())))


def _axes(item: Input, required: Sequence[Input]) -> tuple[str, ...]:
    """The names of a tensor's axes; none if it is no tensor, or nothing names them."""
    if _is_list(item) or item.usage.keys or (item is not required[0] and _is_number(item, required)):
        return ()
    return item.usage.axes[0] if item.usage.axes else named(item.entry)


def _may_be_none(item: Input) -> bool:
    return re.match(r"Optional\b|.*\| ?None$", item.annotation.removeprefix("typing.")) is not None


def _without(item: Input, arg: Arg, required: Sequence[Input]) -> Arg:
    """None in place of the argument, if its annotation allows that; the first one is the input."""
    return PlainArg(None) if item.name != required[0].name and _may_be_none(item) else arg


def _in_lists(guess: Guess, indices: Sequence[int]) -> Iterator[Guess]:
    """The first of these arguments becomes a list."""
    for index in indices[:1]:
        arg = guess.args[index]
        if isinstance(arg, TensorArg):
            yield from islice(lists(guess, index, arg), 3)


def _layouts(first: Input, found: Sequence[Evidence], graph: bool) -> Iterator[tuple[str, ...]]:
    by_layers = [layout for e in found for layout in e.layouts]
    ordered: list[tuple[str, ...]] = [("L", "C")] if graph else []
    for rank in first.usage.ranks:
        ordered += [layout for layout in by_layers if len(layout) == rank]
        ordered += LAYOUTS[rank][:2]
    if first.usage.ranks:
        by_layers = [layout for layout in by_layers if len(layout) in first.usage.ranks]
    layouts = dict.fromkeys((*ordered, *by_layers, *_LAST_LAYOUTS))
    return iter(sorted(layouts, key=lambda layout: len(layout) < first.usage.least))


def _argument(item: Input, layout: tuple[str, ...], required: Sequence[Input], found: Sequence[Evidence]) -> Arg:
    keys = tuple(item.usage.keys)
    if not keys and re.match(r"(dict|Dict|Mapping)\b", item.annotation):
        keys = ANY_KEYS  # it is iterated
    if keys:
        items = ((key, _tensor(replace(item, name=key), layout, required, found)) for key in keys)
        return ListArg(tuple(t if isinstance(t, TensorArg) else TensorArg(key, layout) for key, t in items), keys)
    return _tensor(item, layout, required, found)


def _tensor(item: Input, layout: tuple[str, ...], required: Sequence[Input], found: Sequence[Evidence]) -> Arg:
    name, is_first = snake(item.name), item.name == required[0].name
    tokens = next((e.tokens for e in found if e.tokens), 0)
    if not is_first and _is_number(item, required):
        return _number(item)
    if _EDGES.search(name):
        return TensorArg(item.name, ("P", "E"), "int64", 0, min(table["L"] for table in SIZES))
    if _LENGTHS.search(name):
        return TensorArg(item.name, ("B",), "int64", 1, 8)
    if _TOKENS.search(name) or (is_first and found and found[0].tokens):
        dims = layout if is_first and len(layout) <= 2 else ("B", "L")
        return TensorArg(item.name, dims, "int64", 0, tokens or 8)
    if _MASK.search(name):
        return TensorArg(item.name, ("B", "L"), "bool")
    if _TIME.search(name):
        return TensorArg(item.name, ("B",))
    if not is_first and not item.usage.ranks and _EMBEDDING.search(name) and len(layout) != 3:
        return TensorArg(item.name, ("B", "C"))
    if _FLOW.search(name) and layout == ("B", "C", "H", "W") and len(required) > 1:
        return TensorArg(item.name, ("B", "P", "H", "W"))
    if not is_first and item.usage.ranks and len(layout) != item.usage.ranks[0]:
        return TensorArg(item.name, LAYOUTS[item.usage.ranks[0]][0])
    return TensorArg(item.name, layout)


def _number(item: Input) -> Arg:
    name = snake(item.name)
    if texts := _texts(item):
        return PlainArg(texts[0])
    if _SIZE_PAIR.search(name) or _SIZES.match(item.annotation):
        return SizesArg(("H", "W"))
    if name in _PLANE:
        return SizeArg(_PLANE[name])
    return PlainArg(True if _FLAG.search(name) else 2)


def _texts(item: Input) -> list[str]:
    """The strings that an argument may be."""
    literal = re.match(r"(?:typing\.)?Literal\[(.*)\]$", item.annotation)
    return re.findall(r"['\"]([^'\"]*)['\"]", literal[1]) if literal else item.usage.strings


def _is_number(item: Input, among: Sequence[Input]) -> bool:
    if re.match(r"(int|float|bool|str)\b", item.annotation) or _SIZES.match(item.annotation) or _texts(item):
        return True
    name = snake(item.name)
    plane = {snake(other.name) for other in among} & _PLANE.keys()
    return (name in _PLANE and len(plane) == 2) or bool(_FLAG.search(name) or _SIZE_PAIR.search(name))


def _is_list(item: Input) -> bool:
    if _EDGES.search(snake(item.name)):  # unpacked into the two ends
        return False
    annotated = re.match(r"(list|List|Sequence|tuple|Tuple)\[", item.annotation) is not None
    return annotated or (item.usage.sequence and not item.usage.ranks)
