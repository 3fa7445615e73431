"""Witnesses that another run found are taken over, for the same mutants alone."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import mutants
from factories import make_pair
from witness import Fate

from kernelquarry.pipeline.schema.jsonl_append import add_line
from kernelquarry.transforms.mutate import Fault, Mutant


def test_what_was_sought_for_the_same_mutant_is_not_sought_again(tmp_path: Path) -> None:
    pair = make_pair()
    four = [Mutant(pair.id, "operator", Fault.MASKING, line, "what", f"# {line}\n") for line in range(4)]

    def result(mutant: Mutant, code: str, fate: Fate, witness: dict[str, str] | None = None) -> Any:
        return mutants.Result(
            key=f"{mutant.id} {code} ",
            pair=pair.id,
            operator=mutant.operator,
            fault=mutant.fault.value,
            line=mutant.line,
            what=mutant.what,
            fate=fate.value,
            reason="",
            evidence="",
            witness=witness,
            diff="" if fate is Fate.PASSED else f"diff {mutant.line}",
            seconds=1.0,
            machine=f"of {code}",
            versions={},
        )

    told = {"where": "there", "reason": "wrong_values", "evidence": "far off"}
    known, out = tmp_path / "known.jsonl", tmp_path / "out.jsonl"
    earlier = (Fate.MISSED, told), (Fate.EQUIVALENT, None), (Fate.KILLED, None)  # nothing of the fourth
    for mutant, (fate, witness) in zip(four, earlier, strict=False):
        add_line(known, asdict(result(mutant, "old", fate, witness)))
    passed = [result(mutant, "new", Fate.PASSED) for mutant in four]
    work = [mutants.Work(r.key, pair, m, r) for m, r in zip(four, passed, strict=True)]

    assert mutants.take_over(work, known, out) == work[2:], "a mutant that an earlier verifier killed has no witness"
    taken = mutants.read_found(out)
    assert taken == {
        work[0].key: replace(passed[0], fate="missed", witness=told, diff="diff 0"),
        work[1].key: replace(passed[1], fate="equivalent", diff="diff 1"),
    }
