"""`KernelWriter` sorts verified candidates, and the interactive mode uses the typed lines."""

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
from tests.recipes.evaluate.test_evaluate import ANSWERS, RIGHT, SOFTMAX


class ScriptedSampler:
    """A sampler that cycles through fixed answers and records the prompts."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def sample(self, chats: Sequence[Sequence[Message]], seed: int = 0) -> Iterator[Sampled]:
        for index, (chat, answer) in enumerate(zip(chats, itertools.cycle([ANSWERS[1], ANSWERS[2], ANSWERS[0]]))):
            self.prompts.append(chat[-1]["content"])
            yield Sampled(index, answer, 1)

    def stream(self, chat: Sequence[Message]) -> Iterator[str]:
        self.prompts.append(chat[-1]["content"])
        yield from ANSWERS[0].splitlines(keepends=True)


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[KernelWriter]:
    monkeypatch.setattr("kernelquarry.recipes.generate.writer.open_sampler", lambda *arguments: ScriptedSampler())
    with KernelWriter("given") as writer:
        yield writer


def test_verified_candidates_are_sorted_best_first(writer: KernelWriter) -> None:
    found = writer.generate_triton(SOFTMAX, n=4, verify=True)
    assert [str(candidate).partition(":")[0] for candidate in found] == [
        "verified, pure",
        "no_code",
        "kernel_unused",
        "no_code",
    ]
    assert found[0].code == RIGHT


def test_unverified_candidates_keep_their_order(writer: KernelWriter) -> None:
    found = writer.generate_triton(SOFTMAX, n=2)
    assert [candidate.judgement for candidate in found] == [None, None]
    assert found[0].text == ANSWERS[1] and str(found[0]) == "not verified"


def test_a_module_that_does_not_run_raises_a_user_error(writer: KernelWriter) -> None:
    with pytest.raises(UserError, match=r"the problem does not run: KeyError|NameError"):
        writer.generate_triton("x = undefined", verify=True)


def test_the_interactive_mode_uses_the_typed_module(writer: KernelWriter) -> None:
    printed: list[str] = []
    lines = ["/verify\n", "/go\n", *SOFTMAX.splitlines(keepends=True), "/show\n", "/go\n", "/verify\n", "/what\n"]
    Repl(writer, printed.append).run([*lines, "/exit\n", "/never\n"])
    text = "".join(printed)
    sampler = writer._sampler
    assert isinstance(sampler, ScriptedSampler) and len(sampler.prompts) == 1
    assert "return torch.softmax(x, dim=-1)" in sampler.prompts[0]
    assert "there is no kernel yet" in text and "type a module first" in text and "/what: no such command" in text
    assert text.count("def forward(self, x)") == 2  # shown, and written
    assert "verified, pure" in text and "/never" not in text


def test_the_end_of_input_ends_a_module(writer: KernelWriter) -> None:
    Repl(writer, lambda text: None).run(["class Model:\n", "\n", "\n", "    pass\n"])
    assert isinstance(writer._sampler, ScriptedSampler)
    assert "class Model:\n\n\n    pass\n" in writer._sampler.prompts[0]


def test_the_package_has_no_other_lazy_attribute() -> None:
    with pytest.raises(AttributeError):
        kernelquarry.recipes.Other  # type: ignore[attr-defined]  # noqa: B018


def test_a_missing_local_model_raises_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no tokenizer"):
        KernelWriter(str(tmp_path))
