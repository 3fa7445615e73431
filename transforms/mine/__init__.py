"""Stage `mine`: extract nn.Module classes, each with all definitions it needs, from trees of Python files.

Mined code is parsed and never run. `pipeline.graph` and benchmarks import `mine_tree`; nothing else is public.
"""

from .mine_tree import MineResult, mine_tree

__all__ = ["MineResult", "mine_tree"]
