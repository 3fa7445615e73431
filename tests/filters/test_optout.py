"""Opt-outs match by repository, package, owner, name and address, and by nothing that is merely similar."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelquarry.filters.optout import OptOut, parse_opt_out, read_opt_out
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.provenance import SourceRef
from kernelquarry.pipeline.schema.reasons import Reason

LIST = """
# asked on a Monday
repository  Someone/Layers
repository  shy/*        # all of them
package     Quiet_Package
author      Jane  Doe
author      Jane@Example.org
author      octo
"""


def source(package: str) -> SourceRef:
    return SourceRef("corpus", package, "1", "a.py", "")


@pytest.mark.parametrize(
    ("package", "text", "evidence"),
    [
        ("someone/layers", "", "repository someone/layers"),
        ("Someone/LAYERS", "", "repository someone/layers"),
        ("someone/layers2", "", None),
        ("else/layers", "", None),
        ("shy/anything", "", "repository shy/*"),
        ("quiet.package", "", "package quiet-package"),
        ("quiet", "", None),
        ("octo/cat", "", "author octo"),
        ("cat/octo", "", None),
        ("a/b", "# Copyright (c) 2024 Jane Doe. All rights reserved.", "author jane doe"),
        ("a/b", "__author__ = 'jane doe'", "author jane doe"),
        ("a/b", "# thanks to Jane Doe for the idea", None),
        ("a/b", "# Copyright 2024 Jane Doering", None),
        ("a/b", "# write to jane@example.org", "author jane@example.org"),
        ("a/b", "# write to mary-jane@example.org", None),
    ],
)
def test_matching(package: str, text: str, evidence: str | None) -> None:
    objection = parse_opt_out(LIST, "list")(source(package), text)
    assert (objection and objection.evidence) == evidence
    assert objection is None or objection.reason is Reason.OPTED_OUT


def test_a_list_equals_its_lines() -> None:
    parsed = parse_opt_out(LIST, "list")
    assert parse_opt_out("\n".join(parsed.lines()), "again") == parsed
    assert parsed | OptOut() == parsed
    assert (OptOut(authors=frozenset({"a"})) | OptOut(authors=frozenset({"b"}))).lines() == ["author a", "author b"]


@pytest.mark.parametrize("line", ["someone/layers", "repository layers", "owner someone", "author"])
def test_malformed_lines_are_rejected(line: str) -> None:
    with pytest.raises(UserError, match=r"list, line 2: expected `repository owner/name`"):
        parse_opt_out(f"# first\n{line}\n", "list")


def test_the_shipped_list_is_included(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("author somebody\n")
    assert read_opt_out(path) == read_opt_out() | parse_opt_out("author somebody", "")
    with pytest.raises(UserError, match="No such file"):
        read_opt_out(tmp_path / "none")
    path.write_bytes(b"\xff")
    with pytest.raises(UserError, match="not text in UTF-8"):
        read_opt_out(path)
