"""Kernels in half precision, and autotuned ones, on a GPU."""

from __future__ import annotations

import pytest
from modules import probed
from with_variants import MODULES, candidate_of, lowered_of

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import Engine
from kernelquarry.transforms.tidy import tidy
from kernelquarry.transforms.verify import VerifySettings, verify

SETTINGS = VerifySettings(target="", find_counterexamples=False)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", MODULES)
def test_a_module_in_half_precision(name: str, dtype: str, sandbox: Sandbox) -> None:
    code, calls = MODULES[name]
    verified = verify(candidate_of(probed(code, *calls), dtype, sandbox), sandbox, SETTINGS)
    assert isinstance(verified, Kept), verified
    assert verified.record.verdict.engine is Engine.TRACE


@pytest.mark.parametrize("name", ["linear and gelu", "convolution", "a long sum", "softmax"])
def test_each_configuration_is_verified(name: str, sandbox: Sandbox) -> None:
    tuned = tidy(lowered_of(name, sandbox), autotuned=True)
    assert isinstance(tuned, Kept), tuned
    verified = verify(tuned.record, sandbox, SETTINGS)
    assert isinstance(verified, Kept), f"{verified}\n{tuned.record.triton_code}"
    assert verified.record.verdict.engine is Engine.TRACE
