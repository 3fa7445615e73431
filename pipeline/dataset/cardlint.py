"""Checks a dataset card offline, for what the Hub's server and the `datasets` library require of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCard

# Sections that a card must have; headings of `templates/card.md.j2`.
_SECTIONS = (
    *("What is in it", "How it was built", "How rows were verified", "Licences", "Limits"),
    *("How to cite", "How to opt out"),
)
_SIZE = re.compile(r"n<1K|(?:1K<n<10K)|(?:10K<n<100K)|(?:100K<n<1M)|(?:1M<n<10M)|(?:10M<n<100M)")
_LINK = re.compile(r"\]\(([^):#\s]+)\)")


def lint_card(folder: Path, text: str) -> Iterator[str]:
    """One line for each problem of the card of the dataset in `folder`."""
    try:
        card = DatasetCard(text)
        configs = MetadataConfigs.from_dataset_card_data(card.data)
    except (ValueError, TypeError, yaml.YAMLError) as error:
        yield f"its header cannot be parsed: {str(error).splitlines()[0]}"
        return
    header: dict[str, Any] = card.data.to_dict()
    yield from _lint_header(header)
    yield from _lint_configs(folder, configs)
    headings = re.findall(r"^## (.+)$", card.text, re.MULTILINE)
    yield from (f"it has no section {name!r}" for name in _SECTIONS if name not in headings)
    for target in _LINK.findall(card.text):
        if not (folder / target).exists():
            yield f"it links to {target}, which does not exist"


def _lint_header(header: dict[str, Any]) -> Iterator[str]:
    for field in ("pretty_name", "license", "language", "task_categories", "size_categories", "configs"):
        if not header.get(field):
            yield f"its header has no {field}"
    for size in header.get("size_categories") or ():
        if not _SIZE.fullmatch(str(size)):
            yield f"the Hub has no size category {size!r}"


def _lint_configs(folder: Path, configs: MetadataConfigs) -> Iterator[str]:
    """Problems of the configs: every pattern must match a shard, and every shard exactly one pattern."""
    shards = sorted(path.relative_to(folder).as_posix() for path in (folder / "data").rglob("*.parquet"))
    matches = dict.fromkeys(shards, 0)
    for name, config in configs.items():
        for entry in config["data_files"]:
            matched = [shard for shard in shards if fnmatchcase(shard, entry["path"])]
            if not matched:
                yield f"no file of the config {name} matches {entry['path']}"
            for shard in matched:
                matches[shard] += 1
    yield from (f"{shard} is in {times} configs instead of one" for shard, times in matches.items() if times != 1)
    if sum(bool(config.get("default")) for config in configs.values()) != 1:
        yield "exactly one config must be the default"
