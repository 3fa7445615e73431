"""Read a candidate's source, and run nothing: the language that it must be written in, and work left to PyTorch."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kernelquarry.filters.language import check
from kernelquarry.filters.lint import Finding, Rule, lint
from kernelquarry.pipeline.schema.reasons import Reason

_NO_FILE = frozenset((Rule.UNPARSABLE, Rule.NO_ENTRY))  # findings in a text that is no candidate
_EVIDENCE = 500  # characters


def source_rejection(code: str, init_args: str = "", extern_ops: Collection[str] = ()) -> tuple[Reason, str] | None:
    """The reason to reject a source without running it, with the evidence; None if there is none.

    Args:
        init_args: source of the constructor's arguments.
        extern_ops: operators of PyTorch that a mixed candidate declares.
    """
    findings = lint(code, extern_ops)
    evidence = _described(findings)[:_EVIDENCE]
    if _NO_FILE & {finding.rule for finding in findings}:
        return Reason.NO_CODE, evidence
    if outside := check(code, init_args):
        reason = Reason.OUTSIDE_LANGUAGE if outside.instead else Reason.DOES_NOT_RUN
        return reason, str(outside)[:_EVIDENCE]
    return (Reason.OUTPUT_NOT_FROM_KERNEL, evidence) if findings else None


def _described(findings: Sequence[Finding]) -> str:
    """One line for each rule that is broken, with the places."""
    places: dict[Rule, list[str]] = {}
    for finding in findings:
        places.setdefault(finding.rule, []).append(str(finding))
    return "\n".join(f"{rule.why}: {'; '.join(found)}" for rule, found in places.items())
