"""Translate equations of einops.einsum, whose axes are words, to those of torch.einsum, whose axes are letters."""

from __future__ import annotations

import re
from string import ascii_letters

from .pattern import Unsupported

_WORD = re.compile(r"[^\W\d]\w*")


def equation(text: str) -> str:
    """Translate an equation. Raises: Unsupported: it is malformed, or has more axes than there are letters."""
    words = list(dict.fromkeys(_WORD.findall(text)))
    rest = _WORD.sub("", text).replace("...", "").replace("->", "", 1)
    if "->" not in text or rest.replace(",", "").strip():
        raise Unsupported(f"einsum {text!r}")
    letters = {word: word for word in words if word in ascii_letters}
    for word in words:
        free = [letter for letter in word + ascii_letters if letter in ascii_letters and letter not in letters.values()]
        if word not in letters and not free:
            raise Unsupported(f"einsum {text!r}")
        letters.setdefault(word, next(iter(free), ""))
    return _WORD.sub(lambda found: letters[found.group()], " ".join(text.split()))
