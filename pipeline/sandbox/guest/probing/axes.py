"""The axes of forward's arguments as the source names them: where a shape is unpacked, and in docstrings and comments.

Names are written `("b", "t", "c")`; what one function calls by one name is one symbol in a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .guess import SIZES

Names = tuple[str, ...]

_ITEM = r"(?:[A-Za-z_]\w*|\d+)(?: ?\* ?[A-Za-z_]\w*)?"
_LISTED = re.compile(rf"[(\[] ?({_ITEM}(?: ?(?:,| x ) ?{_ITEM})*),? ?[)\]]")
_CROSSED = re.compile(r"\b([A-Z](?: ?x ?[A-Z0-9]){1,5})\b")
_MARKUP = re.compile(r":math:|\\text|\\times|[`{}$]")
_ENTRY = re.compile(r"^\s*(?:[-*] ?)?\**(\w+)\**(?: ?\([^)]*\))? ?[:=-]")  # "x (Tensor): ...", "- Input: ..."
_NO_AXIS = re.compile(r"tensor|optional|float|int$|bool|str$|list|tuple|dict|default|torch|none|true|false", re.I)
_FOLLOWING = 3  # lines after the one that an entry begins on
_INPUT = frozenset({"input", "inputs", "x"})
_INTEGERS = re.compile(r"\b(Long|Int)Tensor|\bint(64|egers?)?\b|\btorch\.long\b|\bindices\b|token ids|class ind|labels")
_BOOLEANS = re.compile(r"\b(Bool|Byte)Tensor|\bbool(ean)?\b")

_BATCH = frozenset({"b", "bs", "bsz", "bz", "nb", "batch", "batch_size", "batchsize", "n_batch", "nbatch"})
_CHANNELS = frozenset(
    "c ch channel channels chans dim emb embed embed_dim embedding_dim feature features feature_dim hidden_dim "
    "hidden_size d_model in_channels in_dim in_features input_dim input_size feat_dim n_features num_features c_in cin "
    "hidden n_channels e".split()
)
_SEQUENCE = frozenset(
    "l s len length seq seq_len seq_length seqlen sequence_length tokens num_tokens n_tokens time_steps timesteps "
    "n_times num_patches n_patches".split()
)
_TIME = frozenset({"t", "f", "time", "frame", "frames", "num_frames", "n_frames", "duration"})
_PLANE = {"h": "H", "height": "H", "w": "W", "width": "W"}


def entry_of(text: str, parameter: str, is_input: bool) -> str:
    """What the docstrings and comments in `text` say of a parameter of forward, on one line; "" if nothing.

    Args:
        is_input: of the first parameter, which entries for an "input" are about too.
    """
    lines = _MARKUP.sub("", text).splitlines()
    for wanted in ({parameter.lower()}, _INPUT if is_input else frozenset[str]()):
        for index, line in enumerate(lines):
            match = _ENTRY.match(line)
            if match and match[1].lower() in wanted:
                more = lines[index + 1 : index + 1 + _FOLLOWING]
                stop = next((i for i, other in enumerate(more) if not other.strip() or _ENTRY.match(other)), len(more))
                return " ".join(part.strip() for part in (line[match.end(1) :], *more[:stop]))
    return ""


def named(entry: str) -> Names:
    """The axes that an entry lists, `("b", "t", "c")` of "(Tensor): frames, (B, T, C)"; none if it lists none."""
    for match in (*_LISTED.finditer(entry), *_CROSSED.finditer(entry)):
        names = tuple(item.replace(" ", "").lower() for item in re.split(r",| x |(?<=[A-Z])x(?=[A-Z0-9])", match[1]))
        if len(names) <= 6 and not any(_NO_AXIS.search(name) for name in names) and not all(map(str.isdigit, names)):
            return names
    return ()


def dtype_of(entry: str) -> str:
    """Of the tensor, as an entry says it; "" if it does not."""
    if _INTEGERS.search(entry):
        return "int64"
    return "bool" if _BOOLEANS.search(entry) else ""


class Naming:
    """Gives names symbols and sizes, each name the same throughout one call."""

    def __init__(self, known: Mapping[str, int], features: int) -> None:
        """Args: `known`: sizes of names, as the constructor was given them; `features`: the size of the channels."""
        self._known, self._features = {name.lower(): size for name, size in known.items()}, features
        self._symbols: dict[str, str] = {}
        self.sizes: dict[str, int] = {}

    def dims(self, names: Names) -> tuple[str, ...]:
        """The symbols of the axes of one tensor."""
        parts = [name.split("*") for name in names]
        return tuple("*".join(self._symbol(part, i, names) for part in inside) for i, inside in enumerate(parts))

    def _symbol(self, name: str, place: int, names: Names) -> str:
        if name.isdigit():
            name = f"{name}@{place}"
        if name not in self._symbols:
            letter = _letter(name, place, names)
            used = [symbol for symbol in self._symbols.values() if symbol[0] == letter]
            symbol = f"{letter}n{len(used)}" if used else letter
            self._symbols[name], self.sizes[symbol] = symbol, self._size(name, letter, len(used))
        return self._symbols[name]

    def _size(self, name: str, letter: str, others: int) -> int:
        if "@" in name:
            return int(name.partition("@")[0])
        if 1 < self._known.get(name, 0) <= 256:
            return self._known[name]
        return (self._features if letter == "C" else SIZES[0][letter]) + 4 * others


def _letter(name: str, place: int, names: Names) -> str:
    """The symbol's letter, which tells what sizes it may take."""
    if name in _BATCH or (name == "n" and place == 0):
        return "B"
    if name in _PLANE:
        return _PLANE[name]
    if name == "d":
        return "T" if {"c", "h", "w"} <= {*names} else "C"
    if name in _TIME:
        return "T" if len(names) > 3 else "L"
    if name in _CHANNELS or "@" in name or re.search(r"dim$|size$|channels?$|features?$|^d_|^c_", name):
        return "C"
    first = place == 0 and len(names) > 1 and name not in _SEQUENCE and not name.startswith(("n", "l", "seq"))
    return "B" if first else "L"
