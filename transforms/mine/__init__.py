"""Stage `mine`: extract nn.Module classes, each with all definitions it needs, from trees of Python files.

Mined code is parsed and never run. `transform.py` and benchmarks use `mine_tree`; `pipeline.run.merge` uses `distinct`.
"""

from .mine_tree import MineResult, mine_tree

__all__ = ["MineResult", "mine_tree"]
