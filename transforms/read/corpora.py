"""From what a user writes to a corpus."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError

from .folder import open_folder
from .source import Corpus
from .wheels import PinnedWheels, parse_requirements

EMBEDDED = ("tiny", "default", "full")


def open_corpus(name: str, cache: Path) -> Corpus:
    """The corpus called `name`: an embedded one, a requirements file with hashes, or a folder of Python files.

    Args:
        cache: where downloads are kept.

    Raises:
        UserError: there is no such corpus.
    """
    if name in EMBEDDED:
        text = resources.files("kernelquarry.pipeline").joinpath("corpora", f"{name}.txt").read_text()
        return PinnedWheels(name, parse_requirements(text, name), cache)
    path = Path(name)
    if path.is_dir():
        return open_folder(path)
    if path.is_file() and path.suffix == ".txt":
        return PinnedWheels(path.stem, parse_requirements(path.read_text(), name), cache)
    raise UserError(f"{name}: no such corpus: give {', '.join(EMBEDDED)}, a folder, or a requirements file with hashes")
