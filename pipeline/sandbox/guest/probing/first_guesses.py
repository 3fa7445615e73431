"""First guesses at a call of `forward`, from the source's text and the module's layers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import prod

from torch import nn

from .axes import AxisSymbols, dtype_of, listed_axes
from .guess import ANY_KEYS, LAYOUTS, SIZES, Arg, Guess, ListArg, PlainArg, SizeArg, SizesArg, TensorArg, planar
from .kinds import kind_of, snake
from .layer_hints import LayerHint, layer_hints
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
_KIND_SYMBOLS = {"image": "HW", "map": "HW", "length": "L", "frames": "T", "window": "L"}  # of constructor parameters
_LAST_LAYOUTS = (
    *(LAYOUTS[4][0], LAYOUTS[3][0], LAYOUTS[2][0], LAYOUTS[3][1], LAYOUTS[5][0], LAYOUTS[1][1], LAYOUTS[4][1]),
)


def constructor_sizes(values: Mapping[str, str]) -> dict[str, int]:
    """Symbol -> size, from the constructor's arguments: `image_size=32` gives H and W of 32."""
    sizes: dict[str, int] = {}
    for name, text in values.items():
        kind = kind_of(name).name
        if kind in ("inner", "size") and text.isdigit():
            sizes.setdefault("C", int(text))
        if kind not in _KIND_SYMBOLS or not re.fullmatch(r"[(\[]?\d+(, \d+)*[)\]]?", text):
            continue
        numbers = [int(number) for number in re.findall(r"\d+", text)]
        if kind == "window":  # input of shape (windows, tokens of a window, channels)
            numbers = [prod(numbers if len(numbers) > 1 else numbers * 2)]
        symbols = _KIND_SYMBOLS[kind]
        for symbol, size in zip(symbols, numbers * len(symbols) if len(numbers) == 1 else numbers, strict=False):
            sizes.setdefault(symbol, size)
    return {symbol: size for symbol, size in sizes.items() if 1 < size <= 256}


def first_guesses(module: nn.Module, inputs: Sequence[Input], values: Mapping[str, str]) -> Iterator[Guess]:
    """Guesses at the required arguments, best first. `values` are the sources of the constructor's arguments."""
    hints = list(layer_hints(module))
    required = [i for i in inputs if i.required]
    known_sizes = constructor_sizes(values)
    features = next((hint.features for hint in hints if hint.features), 0)
    if features:
        known_sizes.pop("C", None)
    sizes = {**SIZES[0], "C": features or SIZES[0]["C"]}
    yield from _by_axis_names(required, hints, sizes, values)
    is_graph = any(_EDGES.search(i.name) for i in required)
    for layout in _layouts(required[0], hints, is_graph):
        args = tuple(_argument(i, layout, required, hints) for i in required)
        guess = Guess(args, tuple(sorted(sizes.items())))
        if any(_may_be_none(i) for i in required[1:]):
            yield replace(guess, args=tuple(_or_none(i, a, required) for i, a in zip(required, args, strict=True)))
        if "H" not in layout and any(isinstance(arg, SizeArg | SizesArg) for arg in args):
            yield planar(guess)
        yield from _with_list(guess, [i for i, item in enumerate(required) if _is_list(item)])
        yield guess
        if required[0].is_variadic and isinstance(args[0], TensorArg):
            for count in (2, 3):
                yield replace(guess, args=tuple(replace(args[0], name=f"{args[0].name}{n}") for n in range(count)))
        if guess.resized(known_sizes).key() != guess.key():
            yield guess.resized(known_sizes)
        yield from _with_list(
            guess, [i for i, item in enumerate(required) if item.usage.indexed and not _is_list(item)]
        )


def _by_axis_names(
    required: Sequence[Input], hints: Sequence[LayerHint], sizes: Mapping[str, int], values: Mapping[str, str]
) -> Iterator[Guess]:
    """The call with the axes that the source names, if it names the axes of any tensor."""
    symbols = AxisSymbols({name: int(text) for name, text in values.items() if text.isdigit()}, sizes["C"])
    named_dims = [symbols.dims(_axes(item, required)) for item in required]
    if not any(named_dims):
        return
    first = named_dims[0] or next(_layouts(required[0], hints, is_graph=False))
    args: list[Arg] = []
    for item, dims in zip(required, named_dims, strict=True):
        arg = _argument(item, first, required, hints)
        if isinstance(arg, TensorArg) and dims:
            dtype = dtype_of(item.entry) or arg.dtype
            high = 0 if dtype != "int64" else arg.high or 8
            arg = replace(arg, dims=dims, dtype=dtype, high=high)
        args.append(_or_none(item, arg, required))
    yield Guess(tuple(args), tuple(sorted({**sizes, **symbols.sizes}.items())))


def _axes(item: Input, required: Sequence[Input]) -> tuple[str, ...]:
    """The names of a tensor's axes; empty if the argument is no tensor, or if nothing names its axes."""
    if _is_list(item) or item.usage.keys or (item is not required[0] and _is_number(item, required)):
        return ()
    return item.usage.axes[0] if item.usage.axes else listed_axes(item.entry)


def _may_be_none(item: Input) -> bool:
    return re.match(r"Optional\b|.*\| ?None$", item.annotation.removeprefix("typing.")) is not None


def _or_none(item: Input, arg: Arg, required: Sequence[Input]) -> Arg:
    """`PlainArg(None)` if the annotation allows it, else the argument. The first argument is never None."""
    return PlainArg(None) if item.name != required[0].name and _may_be_none(item) else arg


def _with_list(guess: Guess, indices: Sequence[int]) -> Iterator[Guess]:
    """Guesses with a list in place of the first of these arguments."""
    for index in indices[:1]:
        arg = guess.args[index]
        if isinstance(arg, TensorArg):
            yield from islice(lists(guess, index, arg), 3)


def _layouts(first: Input, hints: Sequence[LayerHint], is_graph: bool) -> Iterator[tuple[str, ...]]:
    """Layouts to try for the first input, best first."""
    by_layers = [layout for hint in hints for layout in hint.layouts]
    ordered: list[tuple[str, ...]] = [("L", "C")] if is_graph else []
    for rank in first.usage.ranks:
        ordered += [layout for layout in by_layers if len(layout) == rank]
        ordered += LAYOUTS[rank][:2]
    if first.usage.ranks:
        by_layers = [layout for layout in by_layers if len(layout) in first.usage.ranks]
    layouts = dict.fromkeys((*ordered, *by_layers, *_LAST_LAYOUTS))
    return iter(sorted(layouts, key=lambda layout: len(layout) < first.usage.least))


def _argument(item: Input, layout: tuple[str, ...], required: Sequence[Input], hints: Sequence[LayerHint]) -> Arg:
    keys = tuple(item.usage.keys)
    if not keys and re.match(r"(dict|Dict|Mapping)\b", item.annotation):
        keys = ANY_KEYS  # it is iterated
    if keys:
        items = ((key, _tensor_or_number(replace(item, name=key), layout, required, hints)) for key in keys)
        return ListArg(tuple(t if isinstance(t, TensorArg) else TensorArg(key, layout) for key, t in items), keys)
    return _tensor_or_number(item, layout, required, hints)


def _tensor_or_number(
    item: Input, layout: tuple[str, ...], required: Sequence[Input], hints: Sequence[LayerHint]
) -> Arg:
    name, is_first = snake(item.name), item.name == required[0].name
    tokens = next((hint.tokens for hint in hints if hint.tokens), 0)
    if not is_first and _is_number(item, required):
        return _number(item)
    if _EDGES.search(name):
        return TensorArg(item.name, ("P", "E"), "int64", 0, min(table["L"] for table in SIZES))
    if _LENGTHS.search(name):
        return TensorArg(item.name, ("B",), "int64", 1, 8)
    if _TOKENS.search(name) or (is_first and hints and hints[0].tokens):
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
    if strings := _strings(item):
        return PlainArg(strings[0])
    if _SIZE_PAIR.search(name) or _SIZES.match(item.annotation):
        return SizesArg(("H", "W"))
    if name in _PLANE:
        return SizeArg(_PLANE[name])
    return PlainArg(True if _FLAG.search(name) else 2)


def _strings(item: Input) -> list[str]:
    """The strings that the source allows for an argument."""
    literal = re.match(r"(?:typing\.)?Literal\[(.*)\]$", item.annotation)
    return re.findall(r"['\"]([^'\"]*)['\"]", literal[1]) if literal else item.usage.strings


def _is_number(item: Input, among: Sequence[Input]) -> bool:
    """True if the argument is a constant or a size, by its annotation, its use or its name."""
    if re.match(r"(int|float|bool|str)\b", item.annotation) or _SIZES.match(item.annotation) or _strings(item):
        return True
    name = snake(item.name)
    plane = {snake(other.name) for other in among} & _PLANE.keys()
    return (name in _PLANE and len(plane) == 2) or bool(_FLAG.search(name) or _SIZE_PAIR.search(name))


def _is_list(item: Input) -> bool:
    if _EDGES.search(snake(item.name)):  # unpacked into the two ends
        return False
    annotated = re.match(r"(list|List|Sequence|tuple|Tuple)\[", item.annotation) is not None
    return annotated or (item.usage.sequence and not item.usage.ranks)
