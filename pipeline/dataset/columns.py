"""The meanings of the columns: the comments at the fields of the records, for the docs and the Croissant metadata."""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
from functools import cache

from kernelquarry.pipeline.schema.parse_python import parse
from kernelquarry.pipeline.schema.records import Pair


@cache
def comments(cls: type) -> dict[str, str]:
    """Field or member -> the comment above it and behind it, for the ones that the class itself defines.

    Fields without a comment are left out.
    """
    source = inspect.getsource(cls)
    lines = source.splitlines()
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    texts = {}
    for node in parse(source).body[0].body:  # type: ignore[attr-defined]
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                start = node.lineno
                while lines[start - 2].lstrip().startswith("#"):
                    start -= 1
                texts[name] = " ".join(
                    found[line] for line in range(start, (node.end_lineno or start) + 1) if line in found
                )
    return {name: text for name, text in texts.items() if text}


def meaning(record: type, column: str) -> str:
    """The meaning of a record's column: its comment there, in a base, or else in `Pair`; "" if it has none."""
    classes = [cls for cls in (*record.__mro__, *Pair.__mro__) if cls is not object]
    return next((comments(cls)[column] for cls in classes if column in comments(cls)), "")
