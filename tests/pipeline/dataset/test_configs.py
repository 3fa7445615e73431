"""Every config's rows follow from the pairs, or from a stage, and load."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import datasets
import pytest
from factories import make_contamination, make_pair, make_pairs, make_rejection, make_timing, make_workload

from kernelquarry.pipeline.dataset.chat_rows import pair_prompt
from kernelquarry.pipeline.dataset.configs import derive_rows, find_config
from kernelquarry.pipeline.dataset.rejected import Rejected
from kernelquarry.pipeline.dataset.rows import read_config
from kernelquarry.pipeline.dataset.write_dataset import Build, write_dataset
from kernelquarry.pipeline.prompts import prompt_id, read_answer
from kernelquarry.pipeline.schema.chats import Conversation, Example, Exercise, Message
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import chat_id
from kernelquarry.pipeline.schema.provenance import Distillation, Explanation, TermsClass
from kernelquarry.pipeline.schema.records import Purity, TrainingPair, Variant

EXPLANATION = Explanation(
    instruction="Write it.",
    reasoning="Add, then clip.",
    distillation=Distillation(
        teacher="teacher",
        model="some/model",
        served="some/model",
        version="1",
        endpoint="own",
        terms=TermsClass.OWN,
        terms_source="",
        route="explain",
        system="",
        sampling="{}",
        turns=(),
        similarity=0.0,
    ),
)
BUILD = Build(corpus="tiny", sources={})


def make_conversation() -> Conversation:
    pair = make_pairs(1)[0]
    turns = [("user", "a module"), ("assistant", "no"), ("user", "it does not hold"), ("assistant", "yes")]
    return Conversation(
        id=chat_id("multiturn", turns),
        pair=pair.id,
        prompts=(prompt_id("write"), prompt_id("repair")),
        source=pair.source,
        licence=pair.licence,
        messages=tuple(Message(*turn) for turn in turns),
        reasons=("wrong_values", ""),
        verified=True,
        generator=pair.generator,
        cluster=pair.cluster,
        split=pair.split,
    )


def test_a_pair_becomes_a_chat_with_and_without_thinking() -> None:
    pair = make_pairs(1)[0]
    plain, thinking = derive_rows([replace(pair, shape_general=True)])["sft"]
    assert isinstance(plain, Example) and isinstance(thinking, Example)
    request = [(turn["role"], turn["content"]) for turn in pair_prompt(replace(pair, shape_general=True))]
    for row in (plain, thinking):
        assert [(message.role, message.content) for message in row.messages[:-1]] == request
        assert read_answer(row.messages[-1].content).strip() == pair.triton_code.strip()
        assert (row.pair, row.cluster, row.split) == (pair.id, pair.cluster, pair.split)
    assert (plain.thinking, thinking.thinking) == (False, True)
    thought, _ = thinking.messages[-1].content.split("</think>")
    assert "`weight` [8]" in thought and "`kernel_0`" in thought
    assert plain.prompts == (prompt_id("system"), prompt_id("write"), prompt_id("answer"))


def test_explanations_become_thinking() -> None:
    pair = make_pair(split="train", explanations=(EXPLANATION,))
    *_, row = derive_rows([pair])["sft"]
    assert isinstance(row, Example)
    assert row.messages[-1].content.startswith("<think>\nAdd, then clip.\n</think>")
    assert row.thought_by == "some/model"


def test_an_example_names_the_sizes_that_its_kernel_supports() -> None:
    pair = make_pair(split="train", workloads=(make_workload(5, 8), make_workload(6, 8)))
    requests, exercises = [], []
    for general in (True, False):
        rows = derive_rows([replace(pair, shape_general=general)])
        (request,) = {row.messages[1].content for row in rows["sft"] if isinstance(row, Example)}
        (exercise,) = rows["rl"]
        assert isinstance(exercise, Exercise)
        assert all(prompt_id("write") in row.prompts for row in (*rows["sft"], exercise))
        requests.append(request)
        exercises.append(exercise.prompt[1].content)
    assert "for inputs `x` (batch, 8), where names are sizes that vary." in requests[0]
    assert "for inputs `x` (5, 8)." in requests[1]
    assert exercises == [requests[0], requests[0]]  # evaluation uses the general prompt


def test_the_plan_names_the_supported_sizes() -> None:
    thoughts = []
    for general in (True, False):
        _, thinking = derive_rows([make_pair(split="train", shape_general=general)])["sft"]
        assert isinstance(thinking, Example)
        thoughts.append(thinking.messages[-1].content.split("</think>")[0])
    assert "sizes are arguments" in thoughts[0] and "sizes are numbers" in thoughts[1]


def test_mixed_pairs_give_no_example() -> None:
    rows = derive_rows([make_pair(split="train", purity=Purity.MIXED)])
    assert rows["sft"] == [] and len(rows["rl"]) == 1


def test_an_exercise_has_the_task_without_the_answer() -> None:
    pair = make_pair(timings=(make_timing(),), split="train")
    (row,) = derive_rows([pair])["rl"]
    assert isinstance(row, Exercise)
    for name in ("python_code", "init_args", "workloads", "state", "timings"):
        assert getattr(row, name) == getattr(pair, name)
    assert all(message.role != "assistant" for message in row.prompt)
    assert pair.triton_code not in row.prompt[-1].content


def test_two_kernels_of_one_module_are_one_exercise() -> None:
    first, second = make_pair(split="train"), make_pair(triton_code="# another\n", split="train")
    rows = derive_rows([second, first])
    assert [row.id for row in rows["rl"]] == [row.id for row in derive_rows([first])["rl"]]
    assert len(rows["sft"]) == 4


def test_ids_follow_from_the_messages() -> None:
    pair = make_pairs(1)[0]
    again = [row.id for row in derive_rows([replace(pair, verdict=replace(pair.verdict, launches=7))])["rl"]]
    other = [row.id for row in derive_rows([replace(pair, python_code="class Model: ...")])["rl"]]
    assert again == [row.id for row in derive_rows([pair])["rl"]] != other


def test_every_config_loads_and_reads_back(tmp_path: Path) -> None:
    pairs = make_pairs(8, ("train", "test"))
    rejected = Rejected((make_rejection(),))
    training = [TrainingPair(**{f.name: getattr(pair, f.name) for f in fields(pair)}) for pair in pairs]
    halves = [Variant(**{f.name: getattr(pair, f.name) for f in fields(pair)}, dtype="float16") for pair in pairs]
    others = {"multiturn": [make_conversation()], "backward": training, "contaminated": [make_contamination()]}
    others["variants"] = halves
    write_dataset(tmp_path / "dataset", pairs, rejected, [], BUILD, others)
    expected = {**derive_rows(pairs), "pairs": pairs, "rejected": rejected.rows, **others}
    for each in (find_config(name) for name in expected):
        loaded = datasets.load_dataset(str(tmp_path / "dataset"), each.name, cache_dir=str(tmp_path / "cache"))
        assert sorted(row["id"] for split in loaded.values() for row in split) == sorted(
            row.id for row in expected[each.name]
        )
        streamed = datasets.load_dataset(str(tmp_path / "dataset"), each.name, streaming=True)
        assert next(iter(streamed["train"]))["schema_version"] > 0
        read = read_config(tmp_path / "dataset", each.name, each.record)
        assert sorted(read, key=lambda row: row.id) == sorted(expected[each.name], key=lambda row: row.id)


def test_an_unknown_config_is_an_error() -> None:
    with pytest.raises(UserError, match="no config is called nothing: there are pairs, sft"):
        find_config("nothing")
