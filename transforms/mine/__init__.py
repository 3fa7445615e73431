"""Mine: nn.Module classes, each with all that it needs, from trees of Python files. No code runs."""

from .mine_tree import MineResult, mine_tree

__all__ = ["MineResult", "mine_tree"]
