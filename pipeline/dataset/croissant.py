"""The dataset in the Croissant format, which search engines and loaders read, with its fields for responsible AI.

Formats: https://docs.mlcommons.org/croissant/docs/croissant-spec.html and `croissant-rai-spec.html` beside it. Every
shard is a file with its SHA-256, every config a record set whose fields are the columns.
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

_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
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
    """The metadata as JSON-LD.

    `responsible`: fields of the vocabulary for responsible AI, without its prefix. `configs`: shards by config and
    split; `digests`: SHA-256 of each shard. It holds no date: the same build gives the same bytes.
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
        "description": config.what,
        "key": {"@id": f"{config.name}/id"},
        "field": fields,
    }


def _field(config: Config, column: pa.Field, place: tuple[str, ...]) -> dict[str, Any]:
    """A column, or a part of one: `place` is the config, the column, and the way down to the part."""
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
