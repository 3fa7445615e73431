"""Guest job: `script` in a process that may use a GPU and has the compiler ready."""

from __future__ import annotations

from .run_trials import warm as warm
from .script import run as run
