"""Extracts the code from a model's answer.

Models fence code or not, in one block or several, after thoughts, inside prose, JSON, tags or patches, and break off.
The parser takes any answer without an exception and in bounded time. It tries several readings, the most natural first,
until one gives a complete file: `ModelNew` with its kernels. If one reading gives several files, the last one counts,
since it is the model's final version.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from kernelquarry.pipeline.schema.records import CANDIDATE_ENTRY_POINT

from .entry_class import is_only_entry, renamings
from .fences import Block, blocks_of, without_blocks
from .scan import is_idle, parsed, pieces_of_code
from .thoughts import first_turn, split_thoughts
from .wrappings import clean, unwrapped

MOST = 400_000  # characters of an answer that are parsed
_MOST_WRAPPINGS = 2  # nested in each other
_MOST_PARTS = 6  # blocks that are joined
_PYTHON = frozenset(("", "python", "python3", "py", "triton", "python-triton"))
_INVISIBLE = dict.fromkeys([0, 0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF])
_LINE_ENDS = re.compile(r"\r\n|[\r\x85\u2028\u2029]")
_DEFINES = re.compile(rf"^(?:class|def|@|{CANDIDATE_ENTRY_POINT}[ \t]*=)", re.MULTILINE)
_JIT = re.compile(r"^[ \t]*@(?:\w+\.)*jit\b", re.MULTILINE)
_IMPORTED = frozenset(("torch", "nn", "F", "triton", "tl"))
_NAMED_CLASS = re.compile(rf"^class[ \t]+{CANDIDATE_ENTRY_POINT}\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """The parts of an answer."""

    code: str  # "" if there is no complete file
    thinking: str  # text between the tags for thoughts
    prose: str  # text around the code
    truncated: bool  # True if the answer ends inside a thought or a code block
    renamed: str = ""  # original name of the entry class, if it was renamed to `ModelNew`


class _Rank(IntEnum):
    """The completeness of a piece of code, compared with the requested file."""

    NOTHING = 0
    PARSES = 1
    KERNELS = 2  # kernels without the class
    BROKEN = 3  # the class, but does not parse
    ENTRY = 4  # the class without kernels
    FILE = 5  # class and kernels
    COMPLETE = 6  # class, kernels and imports


_Found = tuple[_Rank, str]


def parse_answer(text: str, rename: bool = False) -> Answer:
    """Parse an answer. Never raises.

    `rename`: accept an entry class with another name if it is unambiguous. Distillation uses it to save answers;
    evaluation does not, since there the name is part of the task.
    """
    text = _LINE_ENDS.sub("\n", text[:MOST].translate(_INVISIBLE))
    text, thinking, is_thinking = split_thoughts(first_turn(text))
    rank, code = _read(text, _MOST_WRAPPINGS)
    renamed = ""
    if rename and rank < _Rank.BROKEN:
        rank, code, renamed = next(_renamed(text), (rank, code, ""))
    blocks = blocks_of(text)
    is_cut = is_thinking or bool(blocks and not blocks[-1].closed)
    code = code.strip("\n") + "\n" if rank else ""
    return Answer(code, thinking, without_blocks(text, blocks), is_cut and rank < _Rank.ENTRY, renamed)


def _renamed(text: str) -> Iterator[tuple[_Rank, str, str]]:
    for name, renamed in renamings(text):
        rank, code = _read(renamed, _MOST_WRAPPINGS)
        tree = parsed(code) if rank >= _Rank.FILE else None
        if tree is not None and is_only_entry(tree):
            yield rank, code, name


def _read(text: str, wrappings: int) -> _Found:
    """The best file in `text`, else the best of its closed Python blocks."""
    text = clean(text)
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
    """Candidates for the file in `text`; later ones are better."""
    ranked = [_ranked(block.code) for block in blocks]
    last = max((at for at, (rank, _) in enumerate(ranked) if rank == _Rank.COMPLETE), default=-1)
    if last >= 0:
        yield ranked[last]
    elif CANDIDATE_ENTRY_POINT in text:
        scanned = [_ranked(piece) for piece in pieces_of_code(text)]
        yield from (found for found in (*ranked, *scanned) if found[0] >= _Rank.ENTRY)
        if any(rank == _Rank.COMPLETE for rank, _ in scanned):
            return
        yield from _join([code for _, code in scanned])
    yield from _join([code for rank, code in ranked[last + 1 :] if rank])


def _join(codes: list[str]) -> Iterator[_Found]:
    """Files joined from several consecutive blocks, from as few as possible for each last block."""
    for last in range(1, len(codes)):
        for first in range(last - 1, max(-1, last - _MOST_PARTS), -1):
            code = "\n\n".join(codes[first : last + 1])
            if CANDIDATE_ENTRY_POINT in code and _JIT.search(code) and _DEFINES.search(codes[last]):
                found = _ranked(code)
                yield found
                if found[0] == _Rank.COMPLETE:
                    break


def _best(found: Iterable[_Found]) -> _Found:
    """The candidate with the highest rank; the last of equals."""
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
    complete = _has_imports(tree) and not any(map(is_idle, tree.body))
    return (_Rank.COMPLETE if complete else _Rank.FILE), code


def _has_imports(tree: ast.Module) -> bool:
    """True if torch's and triton's usual names are bound where the code uses them."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    return {node.id for node in names} & _IMPORTED <= bound


def _is_entry(node: ast.stmt) -> bool:
    """True if the statement defines the entry class, and not only as a stub."""
    if isinstance(node, ast.ClassDef):
        return node.name == CANDIDATE_ENTRY_POINT and not all(map(_is_stub, node.body))
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(target, ast.Name) and target.id == CANDIDATE_ENTRY_POINT for target in targets)


def _is_stub(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return all(map(_is_stub, node.body)) or node.name == "__init__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
