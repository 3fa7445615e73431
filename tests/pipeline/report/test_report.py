"""The report is one self-contained file, complete, escaped and reproducible."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from factories import make_candidate, make_drop_record, make_example, make_pair, make_pairs, make_rejection, make_timing

from kernelquarry.pipeline.report import report
from kernelquarry.pipeline.report.report import EXAMPLES_SHOWN, ROWS_PER_CHUNK, breakable, render_report, sample
from kernelquarry.pipeline.runtime.funnel import StageCounts
from kernelquarry.pipeline.schema.outcome import DropRecord, Status

HOSTILE = '</pre></script><script>alert(1)</script><img src=x onerror=alert(2)> & "quoted"'
FUNNEL = [
    StageCounts("probe", "module", 40, 30, {"no_workload": 9}, {"OSError": 1}),
    StageCounts("verify", "module", 30, 12, {"wrong_values": 18}),
]
LOSSES = [DropRecord(f"mod_{i}", "probe", Status.DROPPED, "no_workload", f"evidence {i}") for i in range(9)]
LOSSES += [DropRecord("mod_9", "probe", Status.ERRORED, "OSError", HOSTILE)]


class Page(HTMLParser):
    """Parses tags, attributes and text; fails on an unbalanced closing tag."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def count(self, tag: str, **attributes: str) -> int:
        return sum(name == tag and attributes.items() <= found.items() for name, found in self.tags)


def test_figures_and_reasons_are_shown() -> None:
    page = Page(render_report("tiny", make_pairs(20), FUNNEL, LOSSES))
    assert page.open == []
    assert page.count("details", **{"class": "pair"}) == 20
    for text in (
        "20 verified pairs from tiny",
        "no inputs were found on which forward runs",
        "failure of the pipeline",
        "80.0 %",
    ):
        assert text in " ".join(page.text.split())
    assert "scale_shift_relu" in page.text and "evidence 0" in page.text


def test_a_page_of_many_rows_shows_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "ROWS_SHOWN", 7)
    page = Page(render_report("tiny", make_pairs(20), FUNNEL, LOSSES))
    assert page.count("details", **{"class": "pair"}) == 8  # with the example
    assert "20 verified pairs. 8 of these are below" in " ".join(page.text.split())


def test_speed_is_shown_if_measured() -> None:
    pairs = make_pairs(5)
    assert "Speed" not in Page(render_report("tiny", pairs, FUNNEL, LOSSES)).text
    timings = [make_timing(), make_timing(eager=50.0), make_timing(compiled=0.0, left_out="compile: no compiler")]
    timings.append(make_timing(candidate=1.0, suspect="too good"))
    timed = [replace(pair, timings=(timing,)) for pair, timing in zip(pairs, timings, strict=False)]
    html = render_report("tiny", timed + pairs[4:], FUNNEL, LOSSES)
    page = Page(html)
    assert page.open == []
    text = " ".join("".join((page.text, *(Page(body).text for chunk in bodies(html) for body in chunk))).split())
    for part in (
        "4 pairs were timed on a GPU, 4 of them on larger tensors", "times contradict each other are left out: 1.",
        "66.7 % of 3 are faster; the median is 3.00 times as fast", "100.0 % of 2 are faster; the median is 2.00",
        "eager 300.0 µs, compile 200.0 µs, candidate 100.0 µs", "compile: no compiler", "suspect: too good",
    ):  # fmt: skip
        assert part in text, part


def test_the_page_is_self_contained() -> None:
    page = Page(render_report("tiny", make_pairs(3), FUNNEL, LOSSES))
    assert not [tag for tag, _ in page.tags if tag in ("link", "img", "iframe")]
    assert not [attrs for _, attrs in page.tags if "src" in attrs]
    links = {attrs["href"] for tag, attrs in page.tags if tag == "a"}
    assert links >= {"#rows", "#funnel", "#dropped", "#evidence", "#coverage"}
    assert links == {f"#{attrs['id']}" for _, attrs in page.tags if "id" in attrs} - {"#find", "#shown", "#more"}


@pytest.mark.parametrize("column", ["python_code", "triton_code", "module_name", "split"])
def test_content_is_escaped(column: str) -> None:
    page = Page(render_report("tiny", [make_pair(**{column: HOSTILE})], FUNNEL, LOSSES))
    assert page.count("script") == 1 and page.count("img") == 0
    assert HOSTILE in page.text


def test_every_row_is_on_the_page_the_rejected_ones_last() -> None:
    pairs, rejected = make_pairs(2 * ROWS_PER_CHUNK), [make_rejection(evidence=HOSTILE)]
    html = render_report("tiny", pairs, FUNNEL, LOSSES, rejected=rejected)
    page = Page(html)
    rows = [attrs for tag, attrs in page.tags if tag == "details" and attrs.get("class") == "pair"]
    assert {row["id"] for row in rows} == {pair.id for pair in pairs} | {rejected[0].id}
    assert [row["data-verdict"] for row in rows] == ["verified"] * len(pairs) + ["rejected"]
    assert rejected[0].reason in (rows[-1]["data-find"] or "")
    assert [row["id"] for row in rows if "open" in row] == [rows[0]["id"]]
    chunks = bodies(html)
    assert [len(chunk) for chunk in chunks] == [ROWS_PER_CHUNK, ROWS_PER_CHUNK, 1]
    for row, body in zip(rows, (body for chunk in chunks for body in chunk), strict=True):
        assert f"kernelquarry replay {row['id']}" in Page(body).text and Page(body).open == []
    assert HOSTILE in Page(chunks[-1][0]).text and Page(chunks[-1][0]).count("script") == 0


def bodies(html: str) -> list[list[str]]:
    """The bodies of the rows, as the page's script unpacks them."""
    found = re.search(r"^const chunks = (\[.*\]);", html, re.MULTILINE)
    assert found is not None
    return [json.loads(zlib.decompress(base64.b64decode(chunk))) for chunk in json.loads(found[1])]


def test_optional_stages_are_hidden_unless_they_were_used() -> None:
    funnel = [*FUNNEL, StageCounts("teach", "module", 12, 12), StageCounts("time", "pair", 12, 12)]
    text = Page(render_report("tiny", make_pairs(3), funnel, [])).text
    assert "Not used in this build: teach, time." in text
    timed = [replace(pair, timings=(make_timing(),)) for pair in make_pairs(3)]
    assert "Not used in this build: teach." in Page(render_report("tiny", timed, funnel, [])).text


def test_names_break_after_separators_alone() -> None:
    assert str(breakable("a_b/<c>")) == "a_<wbr>b/<wbr>&lt;c&gt;"


def test_long_evidence_is_cut() -> None:
    many = [DropRecord(f"mod_{i}", "verify", Status.DROPPED, "wrong_values", "long " * 1000) for i in range(18)]
    page = Page(render_report("tiny", [], FUNNEL, many))
    assert page.count("dd") == EXAMPLES_SHOWN
    assert page.text.count("long ") < 18 * 200


def test_a_rejected_candidate_is_shown_with_its_failing_call() -> None:
    example = make_example(found=HOSTILE)
    loss = make_drop_record(make_candidate(), counter_examples=(example,))
    page = Page(render_report("tiny", make_pairs(1), FUNNEL, [loss]))
    assert "fails on" in page.text
    assert f"x[2, 8], normal, seed 3: {HOSTILE}; output 0[1, 7] is -1.5, not 0.25" in page.text
    assert page.count("script") == 1


def test_an_empty_run() -> None:
    page = Page(render_report("tiny", [], [StageCounts("read", "file", 0, 0)], []))
    assert "0 verified pairs" in page.text


def test_order_does_not_matter() -> None:
    pairs = make_pairs(30)
    assert render_report("tiny", pairs, FUNNEL, LOSSES) == render_report("tiny", pairs[::-1], FUNNEL, LOSSES[::-1])


def test_samples_are_spread_evenly() -> None:
    assert sample(range(10), 20) == list(range(10))
    assert sample(range(10), 5) == [0, 2, 4, 6, 8]
    assert sample([], 5) == []
