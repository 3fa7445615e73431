"""What is code in a model's answer. Models fence it, or not, in one block or several, after thoughts, inside of prose,
JSON, tags or patches, and stop in the middle: whatever they send, reading it ends and raises nothing.

An answer is read in several ways, the most natural first, until one gives a whole file: one that defines `ModelNew`,
with its kernels. Of several files in one reading the last counts, which is what a model settled on.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

from .entry_class import is_the_one, renamings
from .fences import Block, blocks_of, without_blocks
from .scan import is_idle, parsed, pieces_of_code
from .thoughts import first_turn, without_thoughts
from .wrappings import plain, unwrapped

MOST = 400_000  # characters of an answer that are read
_WRAPPINGS = 2  # one in the other
_PARTS = 6  # blocks that are put together
_PYTHON = frozenset(("", "python", "python3", "py", "triton", "python-triton"))
_INVISIBLE = dict.fromkeys([0, 0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF])
_LINE_ENDS = re.compile(r"\r\n|[\r\x85\u2028\u2029]")
_DEFINES = re.compile(rf"^(?:class|def|@|{CANDIDATE_ENTRY_POINT}[ \t]*=)", re.MULTILINE)
_JIT = re.compile(r"^[ \t]*@(?:\w+\.)*jit\b", re.MULTILINE)
_IMPORTED = frozenset(("torch", "nn", "F", "triton", "tl"))
_NAMED_CLASS = re.compile(rf"^class[ \t]+{CANDIDATE_ENTRY_POINT}\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, taken apart."""

    code: str  # "" if there is none that is whole
    thinking: str  # between the tags for thoughts
    prose: str  # what was said beside the code
    truncated: bool  # it ends inside of a thought or a block of code
    renamed: str = ""  # what the class was called, if that is not what it had to be called


class _Rank(IntEnum):
    """How much of the file that was asked for a piece of code is."""

    NOTHING = 0
    PARSES = 1
    KERNELS = 2  # without the class
    BROKEN = 3  # has the class, but does not parse
    ENTRY = 4  # has the class
    FILE = 5  # and its kernels
    COMPLETE = 6  # and its imports


_Found = tuple[_Rank, str]


def parse_answer(text: str, rename: bool = False) -> Answer:
    """Never raises; an answer without code has an empty `code`.

    With `rename` a file without the class that was asked for may have it under another name, if it is plain which is
    meant: for what answers are worth, not for how well a model does as it is told.
    """
    text = _LINE_ENDS.sub("\n", text[:MOST].translate(_INVISIBLE))
    text, thinking, thinks_on = without_thoughts(first_turn(text))
    rank, code = _read(text, _WRAPPINGS)
    renamed = ""
    if rename and rank < _Rank.BROKEN:
        rank, code, renamed = next(_renamed(text), (rank, code, ""))
    blocks = blocks_of(text)
    cut = thinks_on or bool(blocks and not blocks[-1].closed)
    whole = rank >= _Rank.ENTRY
    code = code.strip("\n") + "\n" if rank else ""
    return Answer(code, thinking, without_blocks(text, blocks), cut and not whole, renamed)


def _renamed(text: str) -> Iterator[tuple[_Rank, str, str]]:
    for name, renamed in renamings(text):
        rank, code = _read(renamed, _WRAPPINGS)
        tree = parsed(code) if rank >= _Rank.FILE else None
        if tree is not None and is_the_one(tree):
            yield rank, code, name


def _read(text: str, wrappings: int) -> _Found:
    """The best file in `text`, or else the best of its closed blocks of Python."""
    text = plain(text)
    blocks = blocks_of(text)
    best = _best(_files(text, blocks))
    if best[0] < _Rank.ENTRY:
        best = _best(_ranked(block.code) for block in blocks if block.closed and block.language in _PYTHON)
    if best[0] < _Rank.COMPLETE and wrappings and CANDIDATE_ENTRY_POINT in text.replace("\\_", "_"):
        for inner in unwrapped(text, f"class {CANDIDATE_ENTRY_POINT}"):
            found = _read(inner, wrappings - 1)
            best = found if found[0] > best[0] else best
            if best[0] == _Rank.COMPLETE:
                break
    return best


def _files(text: str, blocks: list[Block]) -> Iterator[_Found]:
    """What `text` has of the file, a better one behind a worse."""
    ranked = [_ranked(block.code) for block in blocks]
    last = max((at for at, (rank, _) in enumerate(ranked) if rank == _Rank.COMPLETE), default=-1)
    if last >= 0:
        yield ranked[last]
    elif CANDIDATE_ENTRY_POINT in text:
        scanned = [_ranked(piece) for piece in pieces_of_code(text)]
        yield from (found for found in (*ranked, *scanned) if found[0] >= _Rank.ENTRY)
        if any(rank == _Rank.COMPLETE for rank, _ in scanned):
            return
        yield from _put_together([code for _, code in scanned])
    yield from _put_together([code for rank, code in ranked[last + 1 :] if rank])


def _put_together(codes: list[str]) -> Iterator[_Found]:
    """Files of several blocks, of as few as it takes for each last one."""
    for last in range(1, len(codes)):
        for first in range(last - 1, max(-1, last - _PARTS), -1):
            code = "\n\n".join(codes[first : last + 1])
            if CANDIDATE_ENTRY_POINT in code and _JIT.search(code) and _DEFINES.search(codes[last]):
                found = _ranked(code)
                yield found
                if found[0] == _Rank.COMPLETE:
                    break


def _best(found: Iterable[_Found]) -> _Found:
    """Of equals the last."""
    best = (_Rank.NOTHING, "")
    for rank, code in found:
        best = (rank, code) if rank >= best[0] else best
    return best


def _ranked(code: str) -> _Found:
    tree = parsed(code)
    if tree is None:
        return (_Rank.BROKEN if _NAMED_CLASS.search(code) else _Rank.NOTHING), code
    kernels = bool(_JIT.search(code))
    if not any(map(_is_entry, tree.body)):
        return (_Rank.KERNELS if kernels else _Rank.PARSES if tree.body else _Rank.NOTHING), code
    if not kernels:
        return _Rank.ENTRY, code
    complete = _has_its_imports(tree) and not any(map(is_idle, tree.body))
    return (_Rank.COMPLETE if complete else _Rank.FILE), code


def _has_its_imports(tree: ast.Module) -> bool:
    """Whether it is not only the part of a file behind its imports."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return {node.id for node in names} & _IMPORTED <= bound


def _is_entry(node: ast.stmt) -> bool:
    """Whether it gives the class, and not as a sketch."""
    if isinstance(node, ast.ClassDef):
        return node.name == CANDIDATE_ENTRY_POINT and not all(map(_is_left_out, node.body))
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == CANDIDATE_ENTRY_POINT for target in targets)


def _is_left_out(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return all(map(_is_left_out, node.body)) or node.name == "__init__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
