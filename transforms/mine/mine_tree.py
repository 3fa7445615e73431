"""Mine one tree of files: an outcome for each file and for each nn.Module class found in it."""

from __future__ import annotations
import __future__

import logging
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelquarry.pipeline.schema.ids import module_id
from kernelquarry.pipeline.schema.outcome import Dropped, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.provenance import Licence
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Module, SourceFile

from . import stand_ins
from . import tree_sitter_nodes as ts
from .bindings import Definition
from .classes import Classes
from .closure import Closure, collect_closure
from .einops.pattern import Unsupported
from .naming import NameConflict
from .prefilter import Candidates
from .render_file import render
from .resolve import Resolver
from .tree import SourceTree
from .users import Users

log = logging.getLogger(__name__)

MAX_BYTES = 2_000_000
_EVIDENCE = 300  # characters
_LEADING = re.compile(r"^ *\t[ \t]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MineResult:
    """One outcome for each file, and one for each class in them that derives from nn.Module."""

    files: tuple[Outcome[SourceFile], ...]
    classes: tuple[Outcome[Module], ...]


def mine_tree(files: Sequence[SourceFile]) -> MineResult:
    """Mine the files of one package or checkout.

    The same code in two places is kept twice, under the same id: ids are digests of the code.
    """
    by_path = {file.source.path: file for file in files}
    tree = SourceTree({path: _normalised(file.text) for path, file in by_path.items()})
    miner = _Miner(tree, by_path)
    scanned: list[Outcome[SourceFile]] = []
    classes: list[Outcome[Module]] = []
    for file in files:
        definitions = miner.scan(file)
        if isinstance(definitions, Dropped):
            scanned.append(definitions)
        else:
            scanned.append(Kept(file))
            classes.extend(miner.mine(file, definitions))
    return MineResult(tuple(scanned), tuple(miner.users.attach(classes)))


class _Miner:
    def __init__(self, tree: SourceTree, files: dict[str, SourceFile]) -> None:
        self._tree, self._files = tree, files
        self._classes = Classes(tree)
        self._resolver = Resolver(tree, self._classes)
        self.users = Users()
        self._candidates = Candidates({path: tree.sources[path] for path in files}, stand_ins.sources())

    def scan(self, file: SourceFile) -> list[Definition] | Dropped:
        """Find the module classes of a file, or the reason to drop it."""
        path = file.source.path
        source = self._tree.sources[path]
        if len(source) > MAX_BYTES:
            return Dropped(file.id, Reason.UNPARSABLE, f"{len(source)} bytes")
        if not self._candidates.may_define(path):
            return Dropped(file.id, Reason.NO_MODULE, "")
        try:
            definitions = self._classes.modules(path)
        except (ts.Malformed, RecursionError) as error:
            return Dropped(file.id, Reason.UNPARSABLE, f"{type(error).__name__}: {error}"[:_EVIDENCE])
        if definitions:
            return definitions
        if self._tree.index(path).has_error:
            return Dropped(file.id, Reason.UNPARSABLE, "syntax error")
        return Dropped(file.id, Reason.NO_MODULE, "")

    def mine(self, file: SourceFile, definitions: list[Definition]) -> Iterator[Outcome[Module]]:
        """Mine each class that `scan` found in the file."""
        counts = Counter(definition.names[0] for definition in definitions)
        for definition in definitions:
            name = definition.names[0]
            line = f"@{definition.node.start_point.row + 1}" if counts[name] > 1 else ""
            unit = f"{file.id}:{name}{line}"
            try:
                yield self._mine_class(file, definition, unit)
            except Exception as error:
                log.debug("mine %s", unit, exc_info=error)
                yield Errored(unit, type(error).__name__, str(error)[:_EVIDENCE])

    def _mine_class(self, file: SourceFile, definition: Definition, unit: str) -> Outcome[Module]:
        objection = self._classes.objection(definition)
        if objection is None:
            try:
                closure = collect_closure(self._resolver, definition, self._classes.passed(definition))
                objection = closure.failure
                if objection is None:
                    code = _indented_by_spaces(render(self._resolver, closure))
                    _compile(code)
                    module = self._module(file, definition, code, closure)
                    self.users.add(module, closure)
                    return Kept(module)
            except NameConflict as error:
                objection = Reason.NAME_CONFLICT, str(error)
            except Unsupported as error:
                objection = Reason.FORBIDDEN_IMPORT, f"einops: {error}"
            except SyntaxError as error:
                objection = Reason.SYNTAX_ERROR, error.msg
            except (ts.Malformed, RecursionError, MemoryError) as error:
                objection = Reason.SYNTAX_ERROR, f"{type(error).__name__}: {error}"
        reason, evidence = objection
        return Dropped(unit, reason, evidence[:_EVIDENCE])

    def _module(self, file: SourceFile, definition: Definition, code: str, closure: Closure) -> Module:
        imported = sorted({d.path for d in closure.definitions if d.path in self._files} - {file.source.path})
        licence = _joint_licence([file.licence, *(self._files[path].licence for path in imported)])
        return Module(module_id(code), definition.names[0], code, file.source, licence, tuple(imported))


def _normalised(text: str) -> bytes:
    """Encode as UTF-8 with plain line ends; lone surrogates become question marks."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    return plain.encode(errors="replace")


def _indented_by_spaces(code: str) -> str:
    """The code as later stages add lines to it."""
    return _LEADING.sub(lambda space: space[0].expandtabs(), code)


def _compile(code: str) -> None:
    """Check the syntax without running anything. Raises: SyntaxError: the code is not Python 3."""
    if "\0" in code:
        raise SyntaxError("null byte")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(code, "<mined>", "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)


def _joint_licence(licences: list[Licence]) -> Licence:
    """Combine the licences of the files that a module is made of."""
    if len({licence.spdx for licence in licences}) == 1:
        return licences[0]
    names = sorted({licence.spdx for licence in licences})
    spdx = " AND ".join(f"({name})" if " OR " in name else name for name in names)
    return Licence(spdx, "; ".join(dict.fromkeys(licence.evidence for licence in licences)))
