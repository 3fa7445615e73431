"""Splits follow clusters and have the configured shares."""

from __future__ import annotations

from collections import Counter

import pytest
from factories import make_pair
from hypothesis import given
from hypothesis import strategies as st

from kernelquarry.pipeline.schema.ids import cluster_id
from kernelquarry.pipeline.schema.outcome import Kept
from kernelquarry.transforms.split import Shares, split
from kernelquarry.transforms.split.assign_split import split_of

CLUSTERS = [cluster_id([str(i)]) for i in range(4000)]


def test_shares_are_met() -> None:
    found = Counter(split_of(cluster, Shares()) for cluster in CLUSTERS)
    assert found["train"] / 4000 == pytest.approx(0.90, abs=0.02)
    assert found["validation"] / 4000 == pytest.approx(0.05, abs=0.01)
    assert found["test"] / 4000 == pytest.approx(0.05, abs=0.01)


def test_pairs_of_one_cluster_share_a_split() -> None:
    for cluster in CLUSTERS[:50]:
        first = split(make_pair(cluster=cluster))
        other = split(make_pair(cluster=cluster, python_code="other", split="stale"))
        assert isinstance(first, Kept) and isinstance(other, Kept)
        assert first.record.split == other.record.split == split_of(cluster, Shares())


@given(st.text(max_size=8), st.floats(0, 0.5), st.floats(0, 0.5))
def test_a_larger_share_only_adds_clusters(cluster: str, share: float, more: float) -> None:
    if split_of(cluster, Shares(0, share)) == "test":
        assert split_of(cluster, Shares(0, min(1.0, share + more))) == "test"


def test_splits_are_stable_across_releases() -> None:
    found = [split_of(cluster, Shares()) for cluster in CLUSTERS[:12]]
    assert {i: name for i, name in enumerate(found) if name != "train"} == {1: "validation", 10: "test"}


def test_a_row_without_a_cluster_is_rejected() -> None:
    with pytest.raises(ValueError, match="has no cluster"):
        split(make_pair())


@pytest.mark.parametrize("shares", [(-0.1, 0.1), (0.6, 0.6), (float("nan"), 0.1)])
def test_impossible_shares_are_rejected(shares: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="shares"):
        Shares(*shares)
