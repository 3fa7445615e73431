"""Each filter objects with its reason and the measured value, and ignores similar but harmless text."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from factories import make_pair

from kernelquarry.filters import FILTERS, Filter, measure
from kernelquarry.filters.balance import Caps, over_caps
from kernelquarry.filters.length import Length
from kernelquarry.filters.noise import Noise
from kernelquarry.filters.personal import Personal
from kernelquarry.filters.secrets import PATTERNS, Secrets
from kernelquarry.filters.triviality import Triviality, base_name
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Measures, Pair

# In two parts, so that no scanner takes this file for a leak.
CREDENTIALS = {
    "anthropic-key": "sk-ant-" + "api03-" + "a1B2" * 10,
    "aws-access-key": "AKIA" + "Z7QW2345ABCDEFGH",
    "github-token": "ghp_" + "a1B2c3" * 6,
    "gitlab-token": "glpat-" + "a1B2c" * 4,
    "google-key": "AIza" + "SyA1b2C" * 5,
    "huggingface-token": "hf_" + "aBcDeFgHiJkLmNoPq" * 2,
    "openai-key": "sk-proj-" + "a1B2" * 8 + "T3Blbk" + "FJ" + "c3D4" * 8,
    "private-key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "pypi-token": "pypi-" + "AgEI" + "cHlwaS5v" * 8,
    "slack-token": "xoxb-" + "123456789012-" + "a1B2c3D4" * 3,
    "stripe-key": "sk_live_" + "a1B2c3D4" * 3,
}


def check(filter: Filter, pair: Pair) -> tuple[Reason, str] | None:
    objection = filter(pair)
    return objection and (objection.reason, objection.evidence)


def test_an_ordinary_pair_passes_every_filter() -> None:
    assert [check(filter, make_pair()) for filter in FILTERS] == [None] * len(FILTERS)


@pytest.mark.parametrize("operators", [(), ("aten.view.default", "aten.clone.default"), ("aten::t",)])
def test_views_and_copies_are_trivial(operators: tuple[str, ...]) -> None:
    reason, evidence = check(Triviality(), make_pair(operators=operators))
    assert reason is Reason.TRIVIAL and evidence.startswith("0 computing operators")


@pytest.mark.parametrize("operator", ["aten.relu.default", "aten::cat", "aten.constant_pad_nd.default", "ours.op"])
def test_one_computing_operator_is_enough(operator: str) -> None:
    assert check(Triviality(), make_pair(operators=("aten.view.default", operator))) is None
    assert check(Triviality(at_least=2), make_pair(operators=("aten.view.default", operator))) is not None


def test_base_name() -> None:
    names = ["aten.add.Tensor", "aten::add.Tensor", "aten::add", "prims.add.default"]
    assert {base_name(name) for name in names} == {"add"}


def test_length_counts_both_sides() -> None:
    pair = make_pair(python_code="x" * 60, triton_code="y" * 40)
    assert check(Length(at_most=100), pair) is None
    assert check(Length(at_most=99), pair) == (Reason.TOO_LONG, "100 characters (60 python, 40 triton)")


def test_every_pattern_has_an_example() -> None:
    assert [name for name, _ in PATTERNS] == list(CREDENTIALS)


@pytest.mark.parametrize("name", CREDENTIALS)
@pytest.mark.parametrize("column", ["python_code", "triton_code", "inductor_code", "init_args"])
def test_credentials_are_found_and_not_in_the_evidence(name: str, column: str) -> None:
    pair = make_pair(**{column: f'first = 1\nkey = "{CREDENTIALS[name]}"\n'})
    assert check(Secrets(), pair) == (Reason.SECRET, f"{name} in {column}, line 2")


@pytest.mark.parametrize(
    "text",
    [
        "AKIA" + "short",
        "my_hf_" + "aBcDeFgHiJkLmNoPq" * 2,  # the prefix is the end of a name
        "hf_" + "aBcDeFgHiJkLmNoPq" * 3,  # too long for a token
        "sk-" + "learn-contrib-something-quite-long-here",
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_lookalikes_are_left_alone(text: str) -> None:
    assert check(Secrets(), make_pair(python_code=text)) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# by Jo Doe <jo.doe" + "@" + "mail.org>", "e-mail address in python_code, line 2"),
        ("# call " + "+49 30 " + "1234 5678", "telephone number in python_code, line 2"),
        ("# jo@example.org, x @ y, a.b@c", None),
        ("y = x @ self.weight.t + 12 - 3456 - 78", None),
    ],
)
def test_personal(text: str, found: str | None) -> None:
    pair = make_pair(python_code=f"x = 1\n{text}\n")
    assert check(Personal(), pair) == (found and (Reason.PERSONAL, found))


def test_noise() -> None:
    assert check(Noise(), make_pair(python_code="ab" * 9 + "\u4e2d\u6587")) == (Reason.NOISE, "10.0% of 20 characters")
    assert check(Noise(at_most=0.1), make_pair(python_code="ab" * 9 + "\u4e2d\u6587")) is None


def test_caps_keep_the_same_rows_in_any_order() -> None:
    rows = [make_pair(python_code=f"x = {i}", cluster="a" if i < 6 else "b", operators=("aten.add",)) for i in range(9)]
    caps = Caps(cluster=4, operators=6, repository=5)
    over = over_caps(rows, caps)
    assert over == over_caps(rows[::-1], caps)
    assert Counter(end.reason for end in over) == {
        Reason.OVER_CLUSTER: 2, Reason.OVER_OPERATORS: 1, Reason.OVER_REPOSITORY: 1,
    }  # fmt: skip
    assert {end.evidence for end in over if end.reason is Reason.OVER_CLUSTER} == {"6 of cluster a, at most 4"}


@pytest.mark.parametrize("name", ["cluster", "operators", "repository"])
def test_a_cap_is_inclusive(name: str) -> None:
    rows = [make_pair(python_code=f"x = {i}", cluster="a", operators=("aten.add",)) for i in range(4)]
    assert not over_caps(rows, replace(Caps(), **{name: 4}))
    assert len(over_caps(rows, replace(Caps(), **{name: 3}))) == 1


def test_filters_judge_by_their_measures() -> None:
    pair = make_pair(
        python_code="ab" * 9 + "\u4e2d\u6587",
        triton_code=f"# jo{'@'}mail.org\n" + f'key = "{CREDENTIALS["aws-access-key"]}"',
        inductor_code="",
        operators=("aten.view.default", "aten.relu.default", "aten.add.Tensor"),
    )
    length = len(pair.python_code) + len(pair.triton_code)
    measured = measure(pair)
    assert measured == Measures(2, length, 0.1, credentials=1, personal=1, kernels=1, inside=1, tokens=measured.tokens)
    assert length / 4 < measured.tokens < length  # a key is cut into more tokens than code is
    assert check(Triviality(at_least=2), pair) is None and check(Triviality(at_least=3), pair)
    assert check(Noise(at_most=0.1), pair) is None and check(Length(at_most=length), pair) is None
    assert check(Secrets(), pair) and check(Personal(), pair)
    own = replace(pair, triton_code="import numpy", python_code="import numpy")
    assert (measure(replace(own, python_code="")).inside, measure(own).inside) == (0, 1)
