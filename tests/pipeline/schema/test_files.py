"""Files are replaced atomically."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kernelquarry.pipeline.schema.files import replace_file

KILLED_HALFWAY = """
import os, signal, sys
from pathlib import Path
from kernelquarry.pipeline.schema.files import replace_file
with replace_file(Path(sys.argv[1])) as stream:
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_new_bytes_replace_the_old(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    for data in (b"old", b"new"):
        with replace_file(path) as stream:
            stream.write(data)
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_an_exception_leaves_the_old_bytes_and_no_litter(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(OSError, match="disk full"), replace_file(path) as stream:
        stream.write(b"half")
        raise OSError("disk full")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_killed_process_leaves_the_old_bytes(tmp_path: Path) -> None:
    path = tmp_path / "shard.parquet"
    path.write_bytes(b"old")
    ended = subprocess.run([sys.executable, "-c", KILLED_HALFWAY, str(path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    (half,) = set(tmp_path.iterdir()) - {path}
    assert half.suffix == ".tmp" and list(tmp_path.glob("*.parquet")) == [path]


def test_other_users_may_read_it(tmp_path: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    with replace_file(tmp_path / "file"):
        pass
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o666 & ~mask
