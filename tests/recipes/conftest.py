"""A tiny model with a byte tokenizer, a dataset, and a recipe, for trainings that take seconds."""

from __future__ import annotations

from pathlib import Path

import pytest
from factories import make_pairs

from kernelquarry.pipeline.dataset.shards import write_rows
from kernelquarry.pipeline.schema.records import Pair

RECIPE = """
[model]
name = "{model}"
context = 2600
chat = "chatml.jinja"
dtype = "float32"

[sft]
learning_rate = 1e-2
steps = 6
batch = 2
per_device = 1
warmup = 0.0
gradient_checkpointing = false
save_steps = 2
report_to = "none"

[grpo]
learning_rate = 1e-3
steps = 2
prompts = 2
generations = 2
per_device = 4
prompt_tokens = 2000
completion_tokens = 12
gradient_checkpointing = false
save_steps = 1
report_to = "none"

[reward]
kind = "graded"
"""


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama with one layer and one token per byte, initialised from a fixed seed."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    marks = ["<|im_start|>", "<|im_end|>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(marks + alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=marks[0], eos_token=marks[1])
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(fast),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=4096,
            bos_token_id=0,
            eos_token_id=1,
            pad_token_id=1,
        )
    )
    folder = tmp_path_factory.mktemp("tiny-model")
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def pairs() -> list[Pair]:
    return make_pairs(12, ("train", "train", "train", "train", "validation", "test"))


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory, pairs: list[Pair]) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    write_rows(folder, Path("data/pairs"), Pair, pairs)
    return folder


@pytest.fixture(scope="session")
def recipe_file(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> str:
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(RECIPE.format(model=tiny_model))
    return str(path)
