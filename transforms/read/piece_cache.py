"""Cache the outcomes of reading a remote table, piece by piece, so that an interrupted run does not download again."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict

from kernelquarry.filters.licence_policy import LicencePolicy
from kernelquarry.filters.optout import OptOut
from kernelquarry.pipeline.schema.arrow import SchemaError, read_records, write_shard
from kernelquarry.pipeline.schema.ids import canonical, sha256
from kernelquarry.pipeline.schema.outcome import DropRecord, Errored, Kept, Outcome
from kernelquarry.pipeline.schema.records import SourceFile

from .corpus import Shard
from .read_files import read_shard
from .table import TableShard

log = logging.getLogger(__name__)


def read_once(shard: Shard, opt_out: OptOut, policy: LicencePolicy, fingerprint: str) -> Iterator[Outcome[SourceFile]]:
    """Read a shard like `read_shard`, from the cache if possible.

    Args:
        fingerprint: digest of the code that decides the result.

    Raises:
        UserError: the shard as a whole cannot be read.
    """
    if not isinstance(shard, TableShard) or shard.cache is None:
        yield from read_shard(shard, opt_out, policy)
        return
    name = sha256(canonical([fingerprint, shard.key, opt_out.lines(), asdict(policy)]))
    kept_path, lost_path = (shard.cache / name[:2] / f"{name}.{end}.parquet" for end in ("kept", "lost"))
    if kept_path.exists():  # written last: the entry is complete
        try:
            outcomes: list[Outcome[SourceFile]] = [Kept(record) for record in read_records(kept_path, SourceFile)]
            yield from outcomes + [loss.outcome for loss in read_records(lost_path, DropRecord)]
            return
        except (SchemaError, FileNotFoundError) as error:
            log.warning("%s: the cached piece is damaged: reading the shard again (%s)", kept_path, error)
    kept, lost, failed = list[SourceFile](), list[DropRecord](), False
    for outcome in read_shard(shard, opt_out, policy):
        match outcome:
            case Kept(record):
                kept.append(record)
            case Errored():
                failed = True  # do not cache: a later run tries again
            case dropped:
                lost.append(DropRecord.of("read", dropped))
        yield outcome
    if not failed:
        write_shard(lost_path, lost, DropRecord)
        write_shard(kept_path, kept, SourceFile)
