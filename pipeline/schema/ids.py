"""Ids that are content addresses: the same content has the same id on every machine and in every release."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

HELD_OUT = "test_"  # prefix of clusters that are for tests
_HEX = 16  # 64 bits: a billion records collide with a probability under 3 %


def sha256(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces, so that equal values have equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def in_share(name: str, key: str, share: float) -> bool:
    """True if the key belongs to this share of all keys. A hash decides, independently for each name.

    A larger share contains a smaller one of the same name.
    """
    return int(sha256(f"{name}:{key}")[:8], 16) < share * 2**32


def module_id(code: str) -> str:
    return f"mod_{sha256(code)[:_HEX]}"


def pair_id(python_code: str, triton_code: str) -> str:
    return f"pair_{sha256(canonical([python_code, triton_code]))[:_HEX]}"


def rejection_id(python_code: str, triton_code: str) -> str:
    return f"rej_{sha256(canonical([python_code, triton_code]))[:_HEX]}"


def contamination_id(module: str) -> str:
    return f"con_{module.partition('_')[2]}"


def cluster_id(members: list[str], is_held_out: bool = False) -> str:
    """The id follows from the smallest member, so the order of members does not matter.

    Args:
        is_held_out: True if the whole cluster is for tests, which the id then says.
    """
    return f"{HELD_OUT if is_held_out else 'clu_'}{sha256(min(members))[:_HEX]}"


def chat_id(config: str, turns: Sequence[tuple[str, str]]) -> str:
    """The id of a training row, prefixed with its config: `sft_...`, `rl_...`. A turn is (role, content)."""
    return f"{config}_{sha256(canonical(turns))[:_HEX]}"
