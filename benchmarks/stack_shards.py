"""Write shards in the schemas of The Stack v1 and v2 from checkouts of public repositories.

    python benchmarks/stack_shards.py out/stack CHECKOUT...      # git directories or working trees; names from folders
    kernelquarry dataset 'out/stack/data/python/*.parquet' --out out/stack-run
    python -m http.server --directory out/stack/v2 8000 &        # the blobs of version 2
    kernelquarry dataset out/stack/v2/the-stack-v2.toml --out out/stack-v2-run

A shard has a row for each Python file of a permissive repository, with all columns of `bigcode/the-stack-dedup` and of
`bigcode/the-stack-v2`, and equal contents once. Dates are null. A folder `owner+name` is the repository `owner/name`.
No content of a shard belongs in this repository. `stack_repositories.txt` names those of the figure `supply.stack`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from figures import ROOT

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.pipeline.schema.records import SourceFile
from kernelquarry.transforms.read import open_corpus, read_shard

ROWS = 2000  # of a shard
_EVENTS = {"stars": "repo_stars", "issues": "repo_issues", "forks": "repo_forks"}


def _columns_v1() -> pa.Schema:
    fields: list[tuple[str, pa.DataType]] = [
        ("hexsha", pa.string()),
        ("size", pa.int64()),
        ("ext", pa.string()),
        ("lang", pa.string()),
    ]
    for kind, event in _EVENTS.items():
        fields += [(f"max_{kind}_{name}", pa.string()) for name in ("repo_path", "repo_name", "repo_head_hexsha")]
        fields += [(f"max_{kind}_repo_licenses", pa.list_(pa.string())), (f"max_{kind}_count", pa.int64())]
        fields += [(f"max_{kind}_{event}_event_{end}_datetime", pa.string()) for end in ("min", "max")]
    fields += [("content", pa.string()), ("avg_line_length", pa.float64())]
    fields += [("max_line_length", pa.int64()), ("alphanum_fraction", pa.float64())]
    return pa.schema(fields)


_TIME = pa.timestamp("us")
V1 = _columns_v1()
V2 = pa.schema(
    [
        *((name, pa.string()) for name in ("blob_id", "directory_id", "path", "content_id")),
        ("detected_licenses", pa.list_(pa.string())),
        *((name, pa.string()) for name in ("license_type", "repo_name", "snapshot_id", "revision_id", "branch_name")),
        *((name, _TIME) for name in ("visit_date", "revision_date", "committer_date")),
        *((name, pa.int64()) for name in ("github_id", "star_events_count", "fork_events_count")),
        ("gha_license_id", pa.string()),
        *((name, _TIME) for name in ("gha_event_created_at", "gha_created_at")),
        *((name, pa.string()) for name in ("gha_language", "src_encoding", "language")),
        *((name, pa.bool_()) for name in ("is_vendor", "is_generated")),
        ("length_bytes", pa.int64()),
        ("extension", pa.string()),
    ]
)


def repository_files(checkout: Path) -> Iterator[tuple[str, SourceFile]]:
    """(repository, file) for each file under a permissive licence. Raises: UserError: no git repository."""
    root = next((each for each in (checkout / "repo" / ".git", checkout / "repo") if each.exists()), checkout)
    for shard in open_corpus(f"{root}@HEAD", ROOT / "out" / "cache").shards():
        for outcome in read_shard(shard):
            if isinstance(outcome, Kept):
                yield checkout.name.replace("+", "/", 1), outcome.record


def row_v1(repository: str, file: SourceFile) -> dict[str, Any]:
    lines = file.text.splitlines() or [""]
    row: dict[str, Any] = {
        "hexsha": hashlib.sha1(file.text.encode(), usedforsecurity=False).hexdigest(),
        "size": len(file.text.encode()),
        "ext": "py",
        "lang": "Python",
        "content": file.text,
        "avg_line_length": len(file.text) / len(lines),
        "max_line_length": max(map(len, lines)),
        "alphanum_fraction": sum(map(str.isalnum, file.text)) / max(1, len(file.text)),
    }
    for kind in _EVENTS:
        row[f"max_{kind}_repo_path"] = file.source.path
        row[f"max_{kind}_repo_name"] = repository
        row[f"max_{kind}_repo_head_hexsha"] = file.source.revision
        row[f"max_{kind}_repo_licenses"] = [file.licence.spdx]
        row[f"max_{kind}_count"] = 1
    return row


def blob_id(content: bytes) -> str:
    """Software Heritage's id of a content, which is git's."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def row_v2(repository: str, file: SourceFile) -> dict[str, Any]:
    content = file.text.encode()
    return {
        "blob_id": blob_id(content),
        "path": f"/{file.source.path}",
        "detected_licenses": [file.licence.spdx],
        "license_type": "permissive",
        "repo_name": repository,
        "revision_id": file.source.revision,
        "branch_name": "refs/heads/main",
        "src_encoding": "UTF-8",
        "language": "Python",
        "is_vendor": False,
        "is_generated": False,
        "length_bytes": len(content),
        "extension": "py",
    }


def write(folder: Path, rows: Sequence[dict[str, Any]], schema: pa.Schema) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shards = [rows[start : start + ROWS] for start in range(0, len(rows), ROWS)]
    for number, shard in enumerate(shards):
        table = pa.Table.from_pylist(list(shard), schema=schema)
        pq.write_table(table, folder / f"data-{number:05d}-of-{len(shards):05d}.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("checkouts", type=Path, nargs="+")
    parser.add_argument("--url", default="http://localhost:8000", help="where the blobs of version 2 are served")
    args = parser.parse_args()
    files: dict[str, tuple[str, SourceFile]] = {}
    for checkout in args.checkouts:
        before = len(files)
        try:
            for repository, file in repository_files(checkout):
                files.setdefault(file.source.sha256, (repository, file))
        except UserError as error:
            print(f"left out: {error}")
        print(f"{checkout.name}: {len(files) - before} files", flush=True)
    write(args.out / "data" / "python", [row_v1(*each) for each in files.values()], V1)
    second = args.out / "v2"
    write(second / "data" / "Python", [row_v2(*each) for each in files.values()], V2)
    (second / "content").mkdir(exist_ok=True)
    for _, file in files.values():
        content = file.text.encode()
        (second / "content" / blob_id(content)).write_bytes(gzip.compress(content, mtime=0))
    shipped = (ROOT / "transforms" / "read" / "shipped" / "the-stack-v2.toml").read_text()
    shipped = shipped.replace("https://softwareheritage.s3.amazonaws.com", args.url)
    shipped = shipped.replace("hf://datasets/bigcode/the-stack-v2", str(second.resolve()))
    (second / "the-stack-v2.toml").write_text(shipped)
    print(f"{len(files)} files of {len({repository for repository, _ in files.values()})} repositories")


if __name__ == "__main__":
    main()
