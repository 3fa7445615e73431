"""Stage `read`: stream every Python file of a corpus with its licence. `docs/guides/sources.md` lists the kinds.

Other stages and `recipes` may import this package; `compositions` is the corpus of generated modules.
"""

from .corpora import EMBEDDED, full_name, is_released, open_corpus
from .corpus import Corpus, Shard
from .piece_cache import read_once
from .read_files import read_shard

__all__ = ["EMBEDDED", "Corpus", "Shard", "full_name", "is_released", "open_corpus", "read_once", "read_shard"]
