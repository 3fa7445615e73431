"""Guest jobs as the host and the guests see them: one module a job, with its request, its reply and its kind.

The host and the guests import it; it imports the standard library alone.
"""

from typing import Any

from .codegen import CODEGEN
from .compile import COMPILE
from .describe_problem import DESCRIBE_PROBLEM
from .kind import GuestKind
from .lower import LOWER
from .outline import OUTLINE
from .perturbed import PERTURBED
from .probe import PROBE
from .reference import REFERENCE
from .run_trials import EXECUTE, INTERPRET
from .score_kernelbench import SCORE_KERNELBENCH, SCORE_KERNELBENCH_GPU
from .score_tritonbench import SCORE_TRITONBENCH, SCORE_TRITONBENCH_GPU
from .script import SCRIPT, SCRIPT_GPU
from .slice import SLICE
from .timing import TIMING
from .trace import TRACE

_OF_STAGES = (PROBE, SLICE, LOWER, REFERENCE, INTERPRET, EXECUTE, TRACE, COMPILE, CODEGEN, PERTURBED, TIMING)
_OF_KERNELBENCH = (DESCRIBE_PROBLEM, OUTLINE, SCORE_KERNELBENCH, SCORE_KERNELBENCH_GPU)
_OTHERS = (SCORE_TRITONBENCH, SCORE_TRITONBENCH_GPU, SCRIPT, SCRIPT_GPU)
KINDS: dict[str, GuestKind[Any, Any]] = {kind.name: kind for kind in (*_OF_STAGES, *_OF_KERNELBENCH, *_OTHERS)}
