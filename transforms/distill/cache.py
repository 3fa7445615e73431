"""The reply cache: every reply that was paid for, in one SQLite file, so that no run requests it again.

The key of a reply is the hash of its request and its sample number. A reply is stored before any caller sees it.
SQLite's write-ahead log survives a kill of the process at any point.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Reply:
    """An endpoint's reply to one request. Its fields are the columns of the cache."""

    request: str  # hash of the request
    sample: int
    teacher: str
    model: str  # name that the endpoint reports
    content: str
    thinking: str  # reasoning that the endpoint returns apart from the content
    finish: str  # "stop", "length", ...; "refused" if the endpoint will not answer this request
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Spending:
    tokens: int
    usd: float


_TYPES = {"int": "INTEGER NOT NULL", "float": "REAL NOT NULL", "str": "TEXT NOT NULL"}
_COLUMNS = ", ".join(f"{field.name} {_TYPES[str(field.type)]}" for field in fields(Reply))
_NAMES = ", ".join(field.name for field in fields(Reply))
_PLACEHOLDERS = ", ".join("?" * len(fields(Reply)))


class Cache:
    """Replies by request hash and sample. Thread-safe; several processes may share the file."""

    def __init__(self, path: Path | None) -> None:
        """`path`: the SQLite file; None keeps the replies in memory."""
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path or ":memory:", timeout=60, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute(
            f"CREATE TABLE IF NOT EXISTS replies ({_COLUMNS}, at REAL NOT NULL, PRIMARY KEY (request, sample))"
        )

    def get(self, request: str, sample: int) -> Reply | None:
        with self._lock:
            row = self._db.execute(
                f"SELECT {_NAMES} FROM replies WHERE request = ? AND sample = ?", (request, sample)
            ).fetchone()
        return Reply(*row) if row else None

    def put(self, reply: Reply) -> None:
        """Store the reply, unless its request and sample have one already."""
        values = (*astuple(reply), time.time())
        with self._lock:
            self._db.execute(f"INSERT OR IGNORE INTO replies ({_NAMES}, at) VALUES ({_PLACEHOLDERS}, ?)", values)

    def spent(self) -> Spending:
        """Total spending of all runs that used this file."""
        with self._lock:
            row = self._db.execute(
                "SELECT COALESCE(SUM(prompt_tokens + completion_tokens), 0), COALESCE(SUM(cost_usd), 0.0) FROM replies"
            ).fetchone()
        return Spending(*row)

    def close(self) -> None:
        with self._lock:
            self._db.close()
