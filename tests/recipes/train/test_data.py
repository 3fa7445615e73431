"""From rows to chats, by what fits."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import pytest
from factories import make_pair

from kernelquarry.pipeline.dataset.chat_rows import module_prompt, pair_prompt
from kernelquarry.pipeline.dataset.shards import write_rows
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.records import Pair, Variant
from kernelquarry.recipes.generate.models import load_tokenizer
from kernelquarry.recipes.train.data import (
    chat_of,
    fit_chats,
    fit_prompts,
    for_grpo,
    for_sft,
    grpo_rows,
    load_pairs,
    split_of,
    trainable,
    without_composed,
)
from kernelquarry.transforms.operators import GENERATOR
from kernelquarry.transforms.split import SPLITS


def tokenizer_at(path: Path, chat: str = "chatml.jinja") -> object:
    return load_tokenizer(str(path), chat)


def test_a_chat_has_the_module_and_the_kernel(pairs: list[Pair]) -> None:
    chat = chat_of(pairs[0])
    assert [message["role"] for message in chat] == ["system", "user", "assistant"]
    assert pairs[0].python_code in chat[1]["content"] and pairs[0].triton_code in chat[2]["content"]


def test_rows_are_read_by_id_and_split(dataset: Path, pairs: list[Pair]) -> None:
    read = load_pairs(str(dataset))
    assert read == sorted(pairs, key=lambda pair: pair.id)
    assert len(split_of(read, "train")) == 8


def test_a_share_of_the_clusters_is_held_out(dataset: Path) -> None:
    half, more, every = (load_pairs(str(dataset), share) for share in (0.5, 0.8, 1.0))
    held = [{pair.id for pair in pairs if pair.split == "test"} for pairs in (half, more, every)]
    assert held[0] <= held[1] <= held[2] == {pair.id for pair in every}
    others = [{pair.cluster for pair in half if pair.split == split} for split in SPLITS]
    assert sum(map(len, others)) == len({pair.cluster for pair in half}), "a cluster is in two splits"


def test_a_held_out_share_leaves_clusters_for_validation(tmp_path: Path) -> None:
    pairs = [make_pair(triton_code=f"# {n}\n", cluster=f"{n:08}", split="train") for n in range(300)]
    write_rows(tmp_path, Path("data/pairs"), Pair, pairs)
    counts = Counter(pair.split for pair in load_pairs(str(tmp_path), 0.5))
    assert 0 < counts["validation"] < 20 < counts["train"] and counts["test"] > 100


def test_fresh_clusters_are_reserved_for_grpo(dataset: Path) -> None:
    pairs = load_pairs(str(dataset))
    train = split_of(pairs, "train")
    assert for_sft(pairs) == for_grpo(pairs) == train
    sft, grpo = for_sft(pairs, 0.5), for_grpo(pairs, 0.5)
    assert {pair.cluster for pair in sft}.isdisjoint(pair.cluster for pair in grpo)
    assert sorted([*sft, *grpo], key=lambda pair: pair.id) == train and sft and grpo
    for empty in (for_sft(pairs, 0.5), []):
        with pytest.raises(UserError, match=r"fresh = 1 leaves one of the trainings without rows|no rows"):
            for_sft(empty, 1.0)
    with pytest.raises(UserError, match=r"fresh = 1e-09 leaves one"):
        for_grpo(pairs, 1e-9)


def test_several_datasets_are_merged(dataset: Path, tmp_path: Path, pairs: list[Pair]) -> None:
    others = [make_pair(triton_code="# another\n", cluster="b" * 8, split="train"), pairs[0]]
    write_rows(tmp_path, Path("data/pairs"), Pair, others)
    assert load_pairs(f"{dataset},{tmp_path}") == sorted([*pairs, others[0]], key=lambda pair: pair.id)
    with pytest.raises(UserError, match="nothing"):
        load_pairs(f"{dataset},{tmp_path / 'nothing'}")


def test_kernels_of_operators_are_read_from_the_variants(dataset: Path, tmp_path: Path, pairs: list[Pair]) -> None:
    columns = {field.name: getattr(pairs[0], field.name) for field in fields(Pair)}
    half = Variant(**columns, dtype="float16")
    by_operators = replace(half, id="pair_by_operators", dtype="float32", generator=GENERATOR, inductor_code="written")
    write_rows(tmp_path, Path("data/variants"), Variant, [half, by_operators])
    assert load_pairs(str(tmp_path), kernels="operators") == [replace(by_operators, triton_code="written")]
    with pytest.raises(UserError, match="kernelquarry operators RUN"):
        load_pairs(str(dataset), kernels="operators")


def test_long_rows_are_counted_and_left_out(pairs: list[Pair], tiny_model: Path) -> None:
    tokenizer = tokenizer_at(tiny_model)
    lengths = sorted(len(tokenizer.apply_chat_template(chat_of(p), tokenize=True)["input_ids"]) for p in pairs)  # type: ignore[attr-defined]
    fitted = fit_chats(pairs, tokenizer, lengths[4])
    assert len(fitted.pairs) + fitted.too_long == len(pairs)
    assert len(fitted.pairs) == sum(length <= lengths[4] for length in lengths)
    assert fitted.tokens == sum(length for length in lengths if length <= lengths[4])
    assert "longer than the context left out" in str(fitted)
    assert fitted.take("model.context", 2) == fitted.pairs[:2] and fitted.take("model.context") == fitted.pairs


def test_prompts_are_shorter_than_chats(pairs: list[Pair], tiny_model: Path) -> None:
    tokenizer = tokenizer_at(tiny_model)
    assert not fit_chats(pairs, tokenizer, 1700).pairs
    assert len(fit_prompts(pairs, tokenizer, 1700).pairs) == len(pairs)
    lengths = [len(tokenizer(chat_of(pair)[-1]["content"])["input_ids"]) for pair in pairs]
    short = fit_prompts(pairs, tokenizer, 1700, sorted(lengths)[5] + 20)  # a turn has some special tokens too
    assert 0 < len(short.pairs) <= len(pairs) and short.too_long == len(pairs) - len(short.pairs)
    assert not fit_prompts(pairs, tokenizer, 1700, min(lengths)).pairs
    with pytest.raises(UserError, match=r"all 12 rows are longer than model\.context allows"):
        fit_chats(pairs, tokenizer, 10).take("model.context")


def test_a_prompt_row_has_the_id_of_its_pair(pairs: list[Pair]) -> None:
    (row,) = grpo_rows(pairs[:1])
    assert row == {"prompt": module_prompt(pairs[0]), "pair": pairs[0].id}


def test_a_kernel_for_one_size_has_a_prompt_that_says_so(pairs: list[Pair]) -> None:
    pair = replace(pairs[0], shape_general=False)
    assert trainable([pair]) == [pair] and module_prompt(pair) == module_prompt(pairs[0])
    prompt = chat_of(pair)[1]["content"]
    assert "for inputs `x` (5, 8)." in prompt and prompt != module_prompt(pair)[1]["content"]


def test_kernels_outside_of_the_language_are_no_examples(pairs: list[Pair]) -> None:
    known = [replace(pairs[0], measures=replace(pairs[0].measures, inside=inside)) for inside in (1, 0, -1)]
    assert trainable(known) == [known[0], known[2]]


def test_composed_modules_are_left_out_of_evaluations(pairs: list[Pair]) -> None:
    first, *others = pairs
    composed = replace(first, source=replace(first.source, corpus="compose"))
    assert without_composed([composed, *others]) == others
    with pytest.raises(UserError, match="composed modules, which are for training"):
        without_composed([composed])


def test_the_loss_covers_only_the_answer(pairs: list[Pair], tiny_model: Path) -> None:
    for chat in ("chatml.jinja", "turns.jinja", "brief.jinja"):
        tokenizer = tokenizer_at(tiny_model, chat)
        encoded = tokenizer.apply_chat_template(  # type: ignore[attr-defined]
            chat_of(pairs[0]), return_dict=True, return_assistant_tokens_mask=True
        )
        learnt = [t for t, mask in zip(encoded["input_ids"], encoded["assistant_masks"], strict=True) if mask]
        assert tokenizer.decode(learnt) == chat_of(pairs[0])[2]["content"] + "<|im_end|>"  # type: ignore[attr-defined]


def test_the_brief_template_leaves_out_rules_and_definitions(pairs: list[Pair], tiny_model: Path) -> None:
    code = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x.flip(0)"
    pair = replace(pairs[0], python_code=code)
    texts = [
        tokenizer_at(tiny_model, chat).apply_chat_template(  # type: ignore[attr-defined]
            pair_prompt(pair), tokenize=False, add_generation_prompt=True
        )
        for chat in ("chatml.jinja", "brief.jinja")
    ]
    rules = ("You write Triton kernels", "Answer with one file", "`ModelNew`", "- `flip`: ")
    assert [[rule in text for rule in rules] for text in texts] == [[True] * 4, [False] * 4]
    request, sizes = pair.python_code.strip(), texts[0].rpartition("`@triton.jit`, for ")[2]
    assert all(request in text and text.endswith(sizes) for text in texts)


@pytest.mark.parametrize("folder", ["nothing", "empty"])
def test_a_folder_that_is_no_dataset_is_rejected(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=folder):
        load_pairs(str(tmp_path / folder))


def test_an_empty_split_is_rejected(pairs: list[Pair]) -> None:
    with pytest.raises(UserError, match="no rows in its split test"):
        split_of([pair for pair in pairs if pair.split == "train"], "test")


def test_a_tokenizer_without_a_chat_template_is_rejected(tiny_model: Path) -> None:
    with pytest.raises(UserError, match=r"no chat template: name one with model\.chat"):
        tokenizer_at(tiny_model, chat="")


def test_a_missing_model_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no tokenizer"):
        tokenizer_at(tmp_path)
