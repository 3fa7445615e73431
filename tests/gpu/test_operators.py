"""Each function of the library of operators is right on a GPU."""

from __future__ import annotations

import pytest
from library_modules import MODULES
from modules import probed

from kernelquarry.pipeline.sandbox import Sandbox
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.transforms.operators import write_candidate
from kernelquarry.transforms.verify import VerifySettings, verify


@pytest.mark.parametrize("name", MODULES)
def test_functions_of_the_library_are_right(name: str, sandbox: Sandbox) -> None:
    code, calls = MODULES[name]
    candidate = write_candidate(probed(code, *calls), sandbox)
    assert isinstance(candidate, Kept), candidate
    verified = verify(candidate.record, sandbox, VerifySettings(find_counterexamples=False))
    assert isinstance(verified, Kept), f"{verified}\n{candidate.record.triton_code}"
