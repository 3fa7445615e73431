"""Read: every Python file of a corpus, with its licence. `docs/sources.md` says what a corpus can be."""

from .corpora import EMBEDDED, full_name, open_corpus
from .once import read_once
from .read import read_shard
from .source import Corpus, Shard

__all__ = ["EMBEDDED", "Corpus", "Shard", "full_name", "open_corpus", "read_once", "read_shard"]
