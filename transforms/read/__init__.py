"""Read: every Python file of a corpus, with its licence. Sources are wheels pinned by hash, and local folders."""

from .corpora import EMBEDDED, open_corpus
from .read import read_tree
from .source import Corpus, Tree

__all__ = ["EMBEDDED", "Corpus", "Tree", "open_corpus", "read_tree"]
