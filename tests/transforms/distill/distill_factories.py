"""Distillation configs for tests: few retries, short waits, low prices."""

from __future__ import annotations

from typing import Any

from kernelquarry.pipeline.schema.provenance import TermsClass
from kernelquarry.transforms.distill.teachers import DistillConfig, Limits, Retries, Teacher, Terms

OPEN = Terms(training=TermsClass.PERMITS, source="Apache-2.0", read_on="2026-11-01")


def make_teacher(url: str = "http://127.0.0.1:9/v1", **overrides: Any) -> Teacher:
    fields: dict[str, Any] = dict(
        name="scripted",
        model="scripted",
        url=url,
        kind="vllm",
        terms="open",
        usd_per_million_input=1.0,
        usd_per_million_output=2.0,
        max_tokens=100,
        timeout_s=5.0,
        sampling={"temperature": 0.5},
    )
    return Teacher(**{**fields, **overrides})


def make_distill_config(*teachers: Teacher, **overrides: Any) -> DistillConfig:
    fields: dict[str, Any] = dict(
        teachers=teachers or (make_teacher(),),
        terms={"open": OPEN},
        limits=Limits(usd=1.0, tokens=1_000_000),
        retries=Retries(tries=3, first_wait_s=0.01, most_bytes=100_000),
        repairs=1,
        modules=2,
    )
    return DistillConfig(**{**fields, **overrides})
