"""Read: every Python file of a corpus, with its licence. `docs/sources.md` says what a corpus can be."""

from .corpora import EMBEDDED, full_name, open_corpus
from .corpus import Corpus, Shard
from .piece_cache import read_once
from .read_files import read_shard

__all__ = ["EMBEDDED", "Corpus", "Shard", "full_name", "open_corpus", "read_once", "read_shard"]
