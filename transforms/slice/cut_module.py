"""Cut one module: record its calls in a guest, choose pieces of the graph, and write each as a module."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import islice

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.cut import Cut, CutPiece
from kernelquarry.pipeline.schema.ids import canonical, module_id, sha256
from kernelquarry.pipeline.schema.outcome import Dropped, DropRecord, Kept, Outcome
from kernelquarry.pipeline.schema.records import Module, Probed, SliceOrigin, Workload
from kernelquarry.transforms.probe.render_module import render
from kernelquarry.transforms.similarity import normal_form
from kernelquarry.transforms.similarity.operator_signature import paths_of, signature_of

from .pieces import Piece, pieces_of
from .record_calls import record_calls
from .traced_graph import Node
from .write_piece import NotWritten, WrittenPiece, write_piece

# Most pieces of one module: (operators from, to, those among them that combine elements from, to, pieces). Half are
# elementwise, since these are one short kernel, which a model learns first.
MOST = (
    (1, 2, 0, 0, 24),
    (3, 3, 0, 0, 8),
    (4, 8, 0, 0, 6),
    (1, 1, 1, 1, 24),
    (2, 2, 1, 1, 6),
    (3, 8, 1, 1, 1),
    (2, 8, 2, 8, 1),
)


def cut(probed: Probed, sandbox: Sandbox) -> Outcome[Cut]:
    """The pieces of a module, or the reason why its calls could not be recorded."""
    recorded = record_calls(probed, sandbox)
    return Kept(_cut(probed, recorded.record)) if isinstance(recorded, Kept) else recorded


def _cut(probed: Probed, graph: Sequence[Node]) -> Cut:
    pieces, lost = dict[str, CutPiece](), list[DropRecord]()
    signature = signature_of(paths_of(probed.graph))
    for pattern, piece in chosen(graph, probed.id):
        try:
            made = _module_of(probed.module, signature, piece, written := write_piece(piece))
            pieces.setdefault(made.id, CutPiece(made, _call(made.code, written), pattern, form(made.code)))
        except NotWritten as why:
            loss = Dropped(f"{probed.id}:{piece.nodes[0]}-{piece.result}", why.reason, why.evidence)
            lost.append(DropRecord.of("slice", loss))
    return Cut(probed.id, tuple(pieces.values()), tuple(lost))


def chosen(graph: Sequence[Node], seed: str) -> Iterator[tuple[str, Piece]]:
    """(digest of its pattern, piece): as many as `MOST` says, one for each pattern, drawn by the seed."""
    patterns: dict[str, Piece] = {}
    for piece in pieces_of(graph):
        patterns.setdefault(sha256(piece.pattern)[:16], piece)
    drawn = sorted(patterns, key=lambda pattern: sha256(f"{seed}:{pattern}"))
    for least, largest, fewest, most, pieces in MOST:
        fitting = (
            p for p in drawn if least <= patterns[p].operators <= largest and fewest <= patterns[p].combining <= most
        )
        yield from ((pattern, patterns[pattern]) for pattern in islice(fitting, pieces))


def form(code: str) -> str:
    """A digest that sources share which differ in names alone."""
    return sha256(ast.unparse(normal_form.renamed(normal_form.exact(code))))[:16]


def _module_of(mother: Module, signature: str, piece: Piece, written: WrittenPiece) -> Module:
    nodes = tuple(f"{place}:{piece.graph[place].path or piece.graph[place].name}" for place in piece.nodes)
    return Module(
        id=module_id(written.code),
        name=written.name,
        code=written.code,
        source=mother.source,
        licence=mother.licence,
        imported_files=mother.imported_files,
        slice_of=(SliceOrigin(mother.id, mother.name, signature, nodes, 1),),
    )


def _call(code: str, written: WrittenPiece) -> str:
    """The code with a call of it."""
    args = canonical([{"tensor": i} for i in range(len(written.inputs))])
    return render(code, str(list(written.init_args)), Workload(written.inputs, args))
