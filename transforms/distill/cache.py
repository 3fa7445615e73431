"""Every reply that was paid for, in one SQLite file: what is in it is never asked again, by any run.

A reply's key is the hash of its request and the number of its sample. It is written before anybody sees it; SQLite's
log of writes survives a kill of the process at any point.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from dataclasses import astuple, dataclass, fields
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Reply:
    """What an endpoint answered to one request."""

    request: str  # hash of the request
    sample: int
    teacher: str
    model: str  # as the endpoint named it
    content: str
    thinking: str  # what the endpoint gave apart from the content
    finish: str  # "stop", "length", ...; "refused" if the endpoint will not answer this request
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Spent:
    tokens: int
    usd: float


_TYPES = {"int": "INTEGER NOT NULL", "float": "REAL NOT NULL", "str": "TEXT NOT NULL"}
_COLUMNS = ", ".join(f"{field.name} {_TYPES[str(field.type)]}" for field in fields(Reply))
_NAMES = ", ".join(field.name for field in fields(Reply))
_MARKS = ", ".join("?" * len(fields(Reply)))


class Cache:
    """Replies by request and sample. Thread-safe; several processes may share the file."""

    def __init__(self, path: Path | None) -> None:
        """None: in memory, for who keeps the replies elsewhere."""
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        place = path or ":memory:"
        self._db = sqlite3.connect(place, timeout=60, isolation_level=None, check_same_thread=False)
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
        """Keeps the first reply to a request, if there are two."""
        with self._lock:
            self._db.execute(
                f"INSERT OR IGNORE INTO replies ({_NAMES}, at) VALUES ({_MARKS}, ?)", (*astuple(reply), time.time())
            )

    def spent(self) -> Spent:
        """By all runs that used this file."""
        with self._lock:
            row = self._db.execute(
                "SELECT COALESCE(SUM(prompt_tokens + completion_tokens), 0), COALESCE(SUM(cost_usd), 0.0) FROM replies"
            ).fetchone()
        return Spent(*row)

    def close(self) -> None:
        with self._lock:
            self._db.close()
