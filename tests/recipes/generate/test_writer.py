"""Kernels for a module: the best first, and a conversation that uses what was typed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import kernelquarry.recipes
from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.recipes import KernelWriter
from kernelquarry.recipes.generate.repl import Repl
from kernelquarry.recipes.generate.samplers import Sampled
from tests.recipes.test_evaluate import ANSWERS, RIGHT, SOFTMAX


class Given:
    """Gives the same answers in turn, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def sample(self, chats: Sequence[Sequence[Message]], seed: int = 0) -> Iterator[Sampled]:
        for index, (chat, answer) in enumerate(zip(chats, itertools.cycle([ANSWERS[1], ANSWERS[2], ANSWERS[0]]))):
            self.asked.append(chat[-1]["content"])
            yield Sampled(index, answer, 1)

    def stream(self, chat: Sequence[Message]) -> Iterator[str]:
        self.asked.append(chat[-1]["content"])
        yield from ANSWERS[0].splitlines(keepends=True)


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelWriter]:
    monkeypatch.setattr("kernelquarry.recipes.generate.writer.open_sampler", lambda *arguments: Given())
    with KernelWriter("given") as writer:
        yield writer


def test_the_best_come_first_with_what_is_known_of_them(writer: KernelWriter) -> None:
    found = writer.generate_triton(SOFTMAX, n=4, verify=True)
    assert [str(candidate).partition(":")[0] for candidate in found] == [
        "verified, pure",
        "no_code",
        "kernel_unused",
        "no_code",
    ]
    assert found[0].code == RIGHT


def test_unverified_candidates_come_as_they_were_written(writer: KernelWriter) -> None:
    found = writer.generate_triton(SOFTMAX, n=2)
    assert [candidate.judgement for candidate in found] == [None, None]
    assert found[0].text == ANSWERS[1] and str(found[0]) == "not verified"


def test_a_module_that_does_not_run_is_told(writer: KernelWriter) -> None:
    with pytest.raises(UserError, match=r"the problem does not run: KeyError|NameError"):
        writer.generate_triton("x = undefined", verify=True)


def test_the_conversation_uses_what_was_typed(writer: KernelWriter) -> None:
    said: list[str] = []
    lines = ["/verify\n", "/go\n", *SOFTMAX.splitlines(keepends=True), "/show\n", "/go\n", "/verify\n", "/what\n"]
    Repl(writer, said.append).run([*lines, "/exit\n", "/never\n"])
    text = "".join(said)
    sampler = writer._sampler
    assert isinstance(sampler, Given) and len(sampler.asked) == 1
    assert "return torch.softmax(x, dim=-1)" in sampler.asked[0]
    assert "there is no kernel yet" in text and "type a module first" in text and "/what: no such command" in text
    assert text.count("def forward(self, x)") == 2  # shown, and written
    assert "verified, pure" in text and "/never" not in text


def test_the_end_of_input_ends_a_module(writer: KernelWriter) -> None:
    Repl(writer, lambda text: None).run(["class Model:\n", "\n", "\n", "    pass\n"])
    assert isinstance(writer._sampler, Given) and "class Model:\n\n\n    pass\n" in writer._sampler.asked[0]


def test_the_package_gives_the_class_and_nothing_else() -> None:
    with pytest.raises(AttributeError):
        kernelquarry.recipes.Other  # type: ignore[attr-defined]  # noqa: B018


def test_a_local_model_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no tokenizer"):
        KernelWriter(str(tmp_path))
