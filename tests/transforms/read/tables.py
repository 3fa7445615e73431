"""Write tables of our own files in the exact forms of The Stack, with the libraries that wrote the originals."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, Value
from datasets import Sequence as Listed

TEXT, INTEGER, REAL, TIME = Value("string"), Value("int64"), Value("float64"), Value("timestamp[ns]")
_EVENTS = ("stars", "issues", "forks")

STACK_V1 = Features(
    {
        "hexsha": TEXT,
        "size": INTEGER,
        "ext": TEXT,
        "lang": TEXT,
        **{
            name: type
            for event in _EVENTS
            for name, type in {
                f"max_{event}_repo_path": TEXT,
                f"max_{event}_repo_name": TEXT,
                f"max_{event}_repo_head_hexsha": TEXT,
                f"max_{event}_repo_licenses": Listed(TEXT),
                f"max_{event}_count": INTEGER,
                f"max_{event}_repo_{event}_event_min_datetime": TEXT,
                f"max_{event}_repo_{event}_event_max_datetime": TEXT,
            }.items()
        },
        "content": TEXT,
        "avg_line_length": REAL,
        "max_line_length": INTEGER,
        "alphanum_fraction": REAL,
    }
)
_REPOSITORY = {
    "snapshot_id": TEXT,
    "revision_id": TEXT,
    "branch_name": TEXT,
    "visit_date": TIME,
    "revision_date": TIME,
    "committer_date": TIME,
    "github_id": INTEGER,
    "star_events_count": INTEGER,
    "fork_events_count": INTEGER,
    "gha_license_id": TEXT,
}
_BLOB = {
    "blob_id": TEXT,
    "path": TEXT,
    "content_id": TEXT,
    "language": TEXT,
    "length_bytes": INTEGER,
    "detected_licenses": Listed(TEXT),
    "license_type": TEXT,
    "src_encoding": TEXT,
    "is_vendor": Value("bool"),
    "is_generated": Value("bool"),
}
STACK_V2 = Features(
    {
        **_BLOB,
        "directory_id": TEXT,
        "repo_name": TEXT,
        **_REPOSITORY,
        "gha_event_created_at": TIME,
        "gha_created_at": TIME,
        "gha_language": TEXT,
        "extension": TEXT,
        "filename": TEXT,
    }
)
STACK_V2_TRAIN = Features(
    {
        "repo_name": TEXT,
        "repo_url": TEXT,
        "directory_id": TEXT,
        **_REPOSITORY,
        "gha_created_at": TIME,
        "gha_updated_at": TIME,
        "gha_pushed_at": TIME,
        "gha_language": TEXT,
        "files": [
            {
                **_BLOB,
                "alphanum_fraction": REAL,
                "alpha_fraction": REAL,
                "num_lines": INTEGER,
                "avg_line_length": REAL,
                "max_line_length": INTEGER,
            }
        ],
        "num_files": INTEGER,
    }
)


def write_table(path: Path, features: Features, rows: Sequence[Mapping[str, Any]], group: int = 1000) -> Path:
    """Write rows with the given values, and arbitrary values in the other columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    full = [_filled(features, row) for row in rows]
    Dataset.from_list(full, features=features).to_parquet(path, batch_size=group)
    return path


def v1_row(path: str, content: Any, repository: str = "someone/layers", licences: Any = ("MIT",)) -> dict[str, Any]:
    return {
        "max_stars_repo_path": path,
        "max_stars_repo_name": repository,
        "max_stars_repo_head_hexsha": "c" * 40,
        "max_stars_repo_licenses": None if licences is None else list(licences),
        "content": content,
    }


def blob_row(path: str, data: bytes, encoding: str = "UTF-8", licences: Any = ("MIT",)) -> dict[str, Any]:
    return {
        "blob_id": hashlib.sha1(data).hexdigest(),
        "path": f"/{path}",
        "detected_licenses": list(licences),
        "license_type": "permissive" if licences else "no_license",
        "src_encoding": encoding,
        "length_bytes": len(data),
    }


def v2_row(path: str, data: bytes, encoding: str = "UTF-8", licences: Any = ("MIT",)) -> dict[str, Any]:
    return {**blob_row(path, data, encoding, licences), "repo_name": "someone/layers", "revision_id": "d" * 40}


def _filled(features: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    def value(name: str, feature: Any) -> Any:
        if name in row:
            if isinstance(feature, list):
                return [_filled(feature[0], element) for element in row[name]]
            return row[name]
        if isinstance(feature, Value):
            kind = feature.dtype
            return {"string": "x", "int64": 1, "float64": 0.5, "bool": False}.get(kind, datetime.datetime(2024, 1, 1))
        return []

    return {name: value(name, feature) for name, feature in features.items()}
