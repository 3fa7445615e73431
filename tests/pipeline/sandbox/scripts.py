"""Jobs whose code is given as text, as mined code is."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from kernelquarry.pipeline.sandbox import Job, Limits, Report
from kernelquarry.pipeline.sandbox.jobs.script import SCRIPT, ScriptRequest

Run = Callable[..., Report]  # the fixture `run`


def script(body: str, arguments: object = None, tensors: dict | None = None, **limits: float) -> Job:
    """A job that runs `body` inside `main(arguments, tensors)`; without a return it replies with nothing."""
    code = f"def main(arguments, tensors):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n    return {{}}, {{}}\n"
    return Job(SCRIPT, ScriptRequest(code, arguments), tensors or {}, Limits(**{"wall_s": 20, **limits}))
