"""The report is one self-contained file, complete, escaped and reproducible."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from factories import make_candidate, make_drop_record, make_example, make_pair, make_pairs, make_timing

from kernelquarry.pipeline.report.highlight import highlight
from kernelquarry.pipeline.report.report import EXAMPLES_SHOWN, PAIRS_SHOWN, render_report, sample
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
        if tag not in ("meta", "input"):
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


def test_speed_is_shown_if_measured() -> None:
    pairs = make_pairs(5)
    assert "Speed" not in Page(render_report("tiny", pairs, FUNNEL, LOSSES)).text
    timings = [make_timing(), make_timing(eager=50.0), make_timing(compiled=0.0, left_out="compile: no compiler")]
    timings.append(make_timing(candidate=1.0, suspect="too good"))
    timed = [replace(pair, timings=(timing,)) for pair, timing in zip(pairs, timings, strict=False)]
    page = Page(render_report("tiny", timed + pairs[4:], FUNNEL, LOSSES))
    assert page.open == []
    text = " ".join(page.text.split())
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
    assert {attrs["href"] for tag, attrs in page.tags if tag == "a"} == {
        "#funnel", "#evidence", "#coverage", "#dropped", "#pairs",
    }  # fmt: skip


@pytest.mark.parametrize("column", ["python_code", "triton_code", "module_name", "split"])
def test_content_is_escaped(column: str) -> None:
    page = Page(render_report("tiny", [make_pair(**{column: HOSTILE})], FUNNEL, LOSSES))
    assert page.count("script") == 1 and page.count("img") == 0
    assert HOSTILE in page.text


def test_long_evidence_and_many_pairs_are_cut() -> None:
    many = [DropRecord(f"mod_{i}", "verify", Status.DROPPED, "wrong_values", "long " * 1000) for i in range(18)]
    page = Page(render_report("tiny", make_pairs(PAIRS_SHOWN + 1), FUNNEL, many))
    assert page.count("details", **{"class": "pair"}) == PAIRS_SHOWN
    assert page.count("dd") - 8 * PAIRS_SHOWN <= EXAMPLES_SHOWN + PAIRS_SHOWN
    assert page.text.count("long ") < 18 * 200
    assert f"{PAIRS_SHOWN} of {PAIRS_SHOWN + 1}, evenly sampled" in page.text


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


def test_highlighting_keeps_every_character() -> None:
    code = (
        '\n\n@triton.jit\ndef f(a: tl.constexpr):\n\t"""<doc>"""\n    return a is not None and f"x<{a}>" & 1.5  # c\n'
    )
    html = highlight(code)
    assert Page(html).text == code.rstrip("\n")
    for piece in ("<b class=k>def", "<b class=f>f</b>", "<b class=d>@triton", "<b class=m>1.5</b>", "&lt;doc&gt;"):
        assert piece in html
    assert set(re.findall(r"<b class=(\w)>", html)) <= set("csmdfbk")
