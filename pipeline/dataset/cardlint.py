"""Whether the Hub will understand a dataset card: what its server checks when a card is committed, and what `datasets`
makes of the card's configs, without asking either."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCard

# What a card must tell; headings of `templates/card.md.j2`.
_SECTIONS = (
    *("What is in it", "How it was built", "What was checked", "Licences", "Limits", "How to cite"),
    "How to opt out",
)
_SIZE = re.compile(r"n<1K|(?:1K<n<10K)|(?:10K<n<100K)|(?:100K<n<1M)|(?:1M<n<10M)|(?:10M<n<100M)")
_LINK = re.compile(r"\]\(([^):#\s]+)\)")


def lint_card(folder: Path, text: str) -> Iterator[str]:
    """What is wrong with the card of a dataset in `folder`, a sentence each."""
    try:
        card = DatasetCard(text)
        configs = MetadataConfigs.from_dataset_card_data(card.data)
    except (ValueError, TypeError, yaml.YAMLError) as error:
        yield f"its header is not understood: {str(error).splitlines()[0]}"
        return
    header: dict[str, Any] = card.data.to_dict()
    yield from _lint_header(header)
    yield from _lint_configs(folder, configs)
    headings = re.findall(r"^## (.+)$", card.text, re.MULTILINE)
    yield from (f"it has no section {name!r}" for name in _SECTIONS if name not in headings)
    for target in _LINK.findall(card.text):
        if not (folder / target).exists():
            yield f"it links to {target}, which is not there"


def _lint_header(header: dict[str, Any]) -> Iterator[str]:
    for field in ("pretty_name", "license", "language", "task_categories", "size_categories", "configs"):
        if not header.get(field):
            yield f"its header has no {field}"
    for size in header.get("size_categories") or ():
        if not _SIZE.fullmatch(str(size)):
            yield f"the Hub knows no size category {size!r}"


def _lint_configs(folder: Path, configs: MetadataConfigs) -> Iterator[str]:
    """Every pattern must find a shard, and every shard be found once."""
    shards = sorted(path.relative_to(folder).as_posix() for path in (folder / "data").rglob("*.parquet"))
    found = dict.fromkeys(shards, 0)
    for name, config in configs.items():
        for entry in config["data_files"]:
            matched = [shard for shard in shards if fnmatchcase(shard, entry["path"])]
            if not matched:
                yield f"no file of the config {name} is {entry['path']}"
            for shard in matched:
                found[shard] += 1
    yield from (f"{shard} is in {times} configs, not in one" for shard, times in found.items() if times != 1)
    if sum(bool(config.get("default")) for config in configs.values()) != 1:
        yield "not one config is the default"
