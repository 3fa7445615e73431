"""Witnesses of an earlier run are reused for the same mutants."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import mutants
from factories import make_pair
from mutate import Fault, Mutant
from witness import Outcome

from kernelquarry.pipeline.schema.jsonl_append import add_line


def test_results_of_earlier_searches_are_reused(tmp_path: Path) -> None:
    pair = make_pair()
    four = [Mutant(pair.id, "operator", Fault.MASKING, line, "what", f"# {line}\n") for line in range(4)]

    def result(mutant: Mutant, code: str, outcome: Outcome, witness: dict[str, str] | None = None) -> Any:
        return mutants.Result(
            key=f"{mutant.id} {code} ",
            pair=pair.id,
            operator=mutant.operator,
            fault=mutant.fault.value,
            line=mutant.line,
            what=mutant.what,
            outcome=outcome.value,
            reason="",
            evidence="",
            witness=witness,
            diff="" if outcome is Outcome.PASSED else f"diff {mutant.line}",
            seconds=1.0,
            machine=f"of {code}",
            versions={},
        )

    shown = {"where": "there", "reason": "wrong_values", "evidence": "far off"}
    known, out = tmp_path / "known.jsonl", tmp_path / "out.jsonl"
    earlier = (Outcome.MISSED, shown), (Outcome.EQUIVALENT, None), (Outcome.KILLED, None)  # none for the fourth
    for mutant, (outcome, witness) in zip(four, earlier, strict=False):
        add_line(known, asdict(result(mutant, "old", outcome, witness)))
    passed = [result(mutant, "new", Outcome.PASSED) for mutant in four]
    work = [mutants.Work(r.key, pair, m, r) for m, r in zip(four, passed, strict=True)]

    assert mutants.reuse_witnesses(work, known, out) == work[2:], "an earlier verifier killed mutant 2, and lacks 3"
    taken = mutants.read_results(out)
    assert taken == {
        work[0].key: replace(passed[0], outcome="missed", witness=shown, diff="diff 0"),
        work[1].key: replace(passed[1], outcome="equivalent", diff="diff 1"),
    }
