"""Distillation config files: invalid files are rejected in one line that says what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from teaching_table import TABLE

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.transforms.distill import DistillConfig, load_distill_config

TEXT = TABLE.format(url="http://127.0.0.1:9/v1")


def load(folder: Path, text: str) -> DistillConfig:
    (folder / "teachers.toml").write_text(text)
    return load_distill_config(folder / "teachers.toml")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('training = "permits"', 'training = "forbids"'), "its terms say 'forbids'"),
        (('training = "permits"', 'training = "unknown"'), "its terms say 'unknown'"),
        (('terms = "open"', 'terms = "other"'), "no terms are called 'other'"),
        (("[limits]", "[limit]"), "limit: there is no such setting"),
        (('kind = "own"', 'kind = "own"\nkey = "abc"'), "teachers.0.key: there is no such setting"),
        (('kind = "own"', 'kind = "own"\nsampling = { max_tokens = 9 }'), "sampling may not set max_tokens"),
        (('routes = ["refine"]', "routes = []"), "teachers.0.routes"),
        (("http://127.0.0.1:9/v1", "127.0.0.1:9/v1"), "teachers.0.url"),
        (("/v1", "/v1/chat/completions"), "up to and including /v1"),
        (("[[teachers]]", "[teachers]"), "written [[teachers]]"),
        (("repairs = 1", 'repairs = 1\naccept_terms = ["nobody"]'), "there is no such teacher"),
        (("samples = 1", "samples = 0"), "teachers.0.samples"),
        (("[limits]", "[limits"), "not valid TOML"),
        (("[[teachers]]", "[[teachers]]\nname = 'scripted'"), "not valid TOML"),
    ],
)
def test_an_invalid_file_is_rejected_in_one_line(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    with pytest.raises(UserError) as refused:
        load(tmp_path, TEXT.replace(*change))
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_a_missing_file_is_rejected(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(UserError, match="shows what is in one"):
            load_distill_config(path)


def test_a_hosted_model_needs_prices(tmp_path: Path) -> None:
    hosted = TEXT.replace('kind = "own"', 'kind = "hosted"')
    assert load(tmp_path, hosted).teachers[0].kind == "hosted"
    with pytest.raises(UserError, match="if it costs nothing"):
        load(tmp_path, hosted.replace("usd_per_million_output = 2.0\n", ""))


def test_sampling_may_hold_lists_and_tables(tmp_path: Path) -> None:
    sampling = 'sampling = { stop = ["END"], chat_template_kwargs = { enable_thinking = false } }'
    table = load(
        tmp_path, TEXT.replace("samples = 1", "samples = 1\n" + sampling).replace('"2026-11-01"', "2026-11-01")
    )
    assert table.teachers[0].sampling["chat_template_kwargs"] == {"enable_thinking": False}
    assert table.terms["open"].read_on == "2026-11-01"


def test_the_examples_in_the_docs_are_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "guides" / "distillation.md").read_text()
    (whole,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert load(tmp_path, whole).teachers[0].name == "local"
    paid = re.sub(r"^# (?=\w+ = )", "", whole, flags=re.MULTILINE)  # settings of hosted teachers
    assert load(tmp_path, paid).teachers[0].usd_per_million_output == 2.0
    own = re.sub(r'^kind = "\w+"', 'kind = "own"', whole, flags=re.MULTILINE)
    own = re.sub(r"^routes = \[.*?\]", 'routes = ["write"]', own, flags=re.MULTILINE)
    own = re.sub(r'^training = "\w+"', 'training = "own"', own, flags=re.MULTILINE)
    assert load(tmp_path, own).teachers[0].kind == "own"


def test_accept_terms_overrules_forbidding_terms(tmp_path: Path) -> None:
    text = TEXT.replace('training = "permits"', 'training = "forbids"')
    assert load(tmp_path, 'accept_terms = ["scripted"]\n' + text).teachers[0].name == "scripted"


def test_the_digest_changes_with_settings_that_decide_results(tmp_path: Path) -> None:
    first = load(tmp_path, TEXT).digest
    assert load(tmp_path, TEXT.replace("usd = 1.0", "usd = 2.0").replace(":9/", ":8/")).digest == first
    assert load(tmp_path, TEXT.replace("samples = 1", "samples = 2")).digest != first
    assert load(tmp_path, TEXT.replace("repairs = 1", "repairs = 2")).digest != first
