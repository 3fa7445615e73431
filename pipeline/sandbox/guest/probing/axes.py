"""Axis names of the arguments of `forward`, from unpacked shapes, docstrings and comments.

The axes of a tensor are written `("b", "t", "c")`. Axes of one function that share a name share a symbol in a guess.
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
_MORE_LINES = 3  # that an entry may continue on
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
    """The entry for a parameter of forward in docstrings and comments, on one line; "" if there is none.

    Args:
        is_input: True for the first parameter, to which an entry for "input" belongs too.
    """
    lines = _MARKUP.sub("", text).splitlines()
    for wanted in ({parameter.lower()}, _INPUT if is_input else frozenset[str]()):
        for index, line in enumerate(lines):
            match = _ENTRY.match(line)
            if match and match[1].lower() in wanted:
                more = lines[index + 1 : index + 1 + _MORE_LINES]
                stop = next((i for i, other in enumerate(more) if not other.strip() or _ENTRY.match(other)), len(more))
                return " ".join(part.strip() for part in (line[match.end(1) :], *more[:stop]))
    return ""


def listed_axes(entry: str) -> Names:
    """The axes that an entry lists: `("b", "t", "c")` for "(Tensor): frames, (B, T, C)"; empty if there are none."""
    for match in (*_LISTED.finditer(entry), *_CROSSED.finditer(entry)):
        names = tuple(item.replace(" ", "").lower() for item in re.split(r",| x |(?<=[A-Z])x(?=[A-Z0-9])", match[1]))
        if len(names) <= 6 and not any(_NO_AXIS.search(name) for name in names) and not all(map(str.isdigit, names)):
            return names
    return ()


def dtype_of(entry: str) -> str:
    """The dtype that an entry states; "" if it states none."""
    if _INTEGERS.search(entry):
        return "int64"
    return "bool" if _BOOLEANS.search(entry) else ""


class AxisSymbols:
    """Assigns symbols and sizes to axis names, the same throughout one call."""

    def __init__(self, known: Mapping[str, int], features: int) -> None:
        """Initialise.

        Args:
            known: name -> integer argument of the constructor.
            features: size of the channels.
        """
        self._known = {name.lower(): size for name, size in known.items()}
        self._features = features
        self._symbols: dict[str, str] = {}
        self.sizes: dict[str, int] = {}

    def dims(self, names: Names) -> tuple[str, ...]:
        """The dimensions of one tensor; `"h*w"` becomes a product of symbols."""
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

    def _size(self, name: str, letter: str, used: int) -> int:
        if "@" in name:
            return int(name.partition("@")[0])
        if 1 < self._known.get(name, 0) <= 256:
            return self._known[name]
        return (self._features if letter == "C" else SIZES[0][letter]) + 4 * used


def _letter(name: str, place: int, names: Names) -> str:
    """The first letter of the symbol, by which its size is chosen."""
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
