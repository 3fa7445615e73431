"""Metadata in the Croissant format, which search engines and loaders read, with its fields for responsible AI.

Formats: https://docs.mlcommons.org/croissant/docs/croissant-spec.html and `croissant-rai-spec.html` there. Every shard
is a file with its SHA-256, every config a record set whose fields are the columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from kernelquarry.pipeline.schema.arrow import schema_of

from .columns import meaning
from .configs import CONFIGS, Config

_CROISSANT_TERMS = (
    "citeAs column containedIn equivalentProperty extract field fileObject fileProperty fileSet format includes "
    "isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace samplingRate "
    "separator source subField transform"
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{term: f"cr:{term}" for term in _CROISSANT_TERMS.split()},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}
_CONFORMS = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]


def render_croissant(
    name: str,
    description: str,
    version: str,
    citation: str,
    licences: Sequence[str],
    responsible: Mapping[str, str],
    configs: Mapping[str, Mapping[str, Sequence[Path]]],
    digests: Mapping[str, str],
) -> str:
    """The metadata as JSON-LD. It has no date, so the same build gives the same bytes.

    `responsible`: fields of the vocabulary for responsible AI, without its prefix; `configs`: shards by config and
    split; `digests`: SHA-256 of each shard.
    """
    shards = {
        name: [path.as_posix() for paths in splits.values() for path in paths] for name, splits in configs.items()
    }
    document = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": _CONFORMS,
        "name": name,
        "description": description,
        "version": version,
        "license": list(licences),
        "citeAs": citation,
        "creator": {"@type": "Organization", "name": "KernelQuarry"},
        "keywords": ["triton", "pytorch", "gpu kernels", "code generation", "verified"],
        "isLiveDataset": False,
        **{f"rai:{field}": text for field, text in responsible.items()},
        "distribution": [_file(path, digests[path]) for paths in shards.values() for path in paths]
        + [_file_set(config, paths) for config, paths in shards.items() if paths],
        "recordSet": [_record_set(config) for config in CONFIGS if shards.get(config.name)],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _file(path: str, digest: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": path,
        "name": path,
        "contentUrl": path,
        "encodingFormat": "application/x-parquet",
        "sha256": digest,
    }


def _file_set(config: str, paths: Sequence[str]) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"{config}-shards",
        "name": f"{config}-shards",
        "description": f"All shards of the config {config}.",
        "containedIn": [{"@id": path} for path in paths],
        "encodingFormat": "application/x-parquet",
        "includes": "*.parquet",
    }


def _record_set(config: Config) -> dict[str, Any]:
    fields = [_field(config, column, (config.name, column.name)) for column in schema_of(config.record)]
    return {
        "@type": "cr:RecordSet",
        "@id": config.name,
        "name": config.name,
        "description": config.description,
        "key": {"@id": f"{config.name}/id"},
        "field": fields,
    }


def _field(config: Config, column: pa.Field, place: tuple[str, ...]) -> dict[str, Any]:
    """A column, or a field nested in it. `place`: names of the config, the column and the nested fields."""
    repeated, kind = pa.types.is_list(column.type), column.type
    while pa.types.is_list(kind):
        kind = kind.value_type
    source: dict[str, Any] = {"fileSet": {"@id": f"{config.name}-shards"}, "extract": {"column": place[1]}}
    if len(place) > 2:
        source["transform"] = {"jsonPath": ".".join(place[2:])}
    field: dict[str, Any] = {"@type": "cr:Field", "@id": "/".join(place), "name": column.name, "source": source}
    if len(place) == 2:
        field["description"] = meaning(config.record, column.name)
    if repeated:
        field["repeated"] = True
    if pa.types.is_struct(kind):
        field["subField"] = [_field(config, part, (*place, part.name)) for part in kind]
    else:
        field["dataType"] = _data_type(kind)
    return field


def _data_type(kind: pa.DataType) -> str:
    if pa.types.is_string(kind):
        return "sc:Text"
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    return "sc:Integer" if pa.types.is_integer(kind) else "sc:Float"
