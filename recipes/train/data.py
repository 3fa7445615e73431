"""Training data from a dataset's pairs: chats for supervised training, prompts for GRPO."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.dataset.chat_rows import module_prompt, pair_prompt, plan
from kernelquarry.pipeline.dataset.rows import read_config, read_rows
from kernelquarry.pipeline.prompts import Message, answer
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import in_share
from kernelquarry.pipeline.schema.records import Pair, Purity, Variant
from kernelquarry.recipes.config import Kernels
from kernelquarry.transforms.read.compositions import PACKAGE as COMPOSED
from kernelquarry.transforms.split import Shares, with_split

from .schedule import pack

_logger = logging.getLogger(__name__)
_NO_ROWS = "fresh = %g leaves one of the trainings without rows: change it with --set"
_SHARDS = ["data/pairs/*.parquet", "data/variants/*.parquet"]
_VALIDATION = 0.02  # share of the clusters for validation, if a share is held out


@dataclass(frozen=True, slots=True)
class Fitted:
    """Pairs that fit into the model's context, and the number of those that do not. No pair is truncated."""

    pairs: tuple[Pair, ...]
    too_long: int
    tokens: int  # of the pairs that fit

    def take(self, knob: str, limit: int = 0) -> tuple[Pair, ...]:
        """The first `limit` pairs (0: all). Raises: UserError, which names the setting `knob`: no pair fits."""
        if not self.pairs:
            raise UserError(f"all {self.too_long} rows are longer than {knob} allows: raise it with --set")
        return self.pairs[: limit or None]

    def __str__(self) -> str:
        return f"{len(self.pairs)} rows, {self.tokens:,} tokens; {self.too_long} longer than the context left out"


def load_pairs(dataset: str, held_out: float = 0.0, kernels: Kernels = "pairs") -> list[Pair]:
    """The pairs of dataset folders or of datasets on the Hub, sorted by id.

    Args:
        dataset: folders or ids, separated by commas.
        kernels: "operators" takes the rows with a kernel for each operator instead, from the config `variants`.
        held_out: share of the clusters that replaces the test split and includes it; a few of the other clusters
            are for validation. 0 keeps the dataset's splits.

    Raises:
        UserError: there is no such dataset, it has another schema, or no such rows.
    """
    read = read_rows if kernels == "pairs" else _read_operators
    by_id = {pair.id: pair for name in dataset.split(",") for pair in read(_folder(name))}
    if not by_id and kernels == "operators":
        raise UserError(f"{dataset} has no kernels of operators: `kernelquarry operators RUN` makes them")
    pairs = [by_id[id] for id in sorted(by_id)]
    return [with_split(pair, Shares(min(_VALIDATION, 1 - held_out), held_out)) for pair in pairs] if held_out else pairs


def _read_operators(dataset: Path) -> Iterator[Pair]:
    """The rows, with the text as the library wrote it: a model need not learn which branches verified calls took."""
    rows = (row for row in read_config(dataset, "variants", Variant) if row.generator.kind == "library")
    return (replace(row, triton_code=row.inductor_code) for row in rows)


def _folder(dataset: str) -> Path:
    """The dataset's folder, downloaded from the Hub if `dataset` is no local folder."""
    if Path(dataset).is_dir():
        return Path(dataset)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(dataset, repo_type="dataset", allow_patterns=_SHARDS))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        line = str(error).strip().splitlines()[0]
        raise UserError(f"{dataset}: no dataset folder, and not available on the Hub: {line}") from None


def split_of(pairs: Iterable[Pair], split: str) -> list[Pair]:
    """The pairs of one split. Raises: UserError: there is none."""
    return _not_empty(
        [pair for pair in pairs if pair.split == split],
        f"the dataset has no rows in its split {split}: build a larger one",
    )


def for_sft(pairs: Iterable[Pair], fresh: float = 0.0, share: float = 1.0) -> list[Pair]:
    """The train split without the share `fresh` of the clusters, and of these the share `share`.

    Raises: UserError: no pair is left.
    """
    train = [pair for pair in split_of(pairs, "train") if not in_share("fresh", pair.cluster, fresh)]
    used = [pair for pair in train if in_share("share", pair.cluster, share)]
    return _not_empty(used, f"{_NO_ROWS % fresh}, or raise sft.share")


def for_grpo(pairs: Iterable[Pair], fresh: float = 0.0) -> list[Pair]:
    """The share `fresh` of the train split's clusters, or the whole split if `fresh` is 0.

    A model has memorised the modules of its supervised training, so its answers to them hardly differ and GRPO learns
    little; modules that are new to it are like those of the evaluation.

    Raises:
        UserError: there is no pair.
    """
    train = split_of(pairs, "train")
    kept = [pair for pair in train if in_share("fresh", pair.cluster, fresh)]
    return _not_empty(kept, _NO_ROWS % fresh) if fresh else train


def without_composed(pairs: Iterable[Pair]) -> list[Pair]:
    """Pairs of mined modules; composed modules are for training only. Raises: UserError: there is none."""
    return _not_empty(
        [pair for pair in pairs if pair.source.corpus != COMPOSED],
        "all rows are of composed modules, which are for training: evaluate on mined ones",
    )


def _not_empty(pairs: list[Pair], message: str) -> list[Pair]:
    if not pairs:
        raise UserError(message)
    return pairs


def chat_of(pair: Pair, thinking: bool = False) -> list[Message]:
    """The prompt, and the kernel as the answer, after a plan if `thinking`."""
    return [*pair_prompt(pair), answer(pair.triton_code, plan(pair) if thinking else "")]


def fit_chats(pairs: Sequence[Pair], tokenizer: Any, tokens: int, thinking: bool = False) -> Fitted:
    """Pairs whose chat has at most `tokens` tokens."""
    return _fitted(pairs, _lengths(tokenizer, [chat_of(pair, thinking) for pair in pairs], False), tokens)


def fit_prompts(pairs: Sequence[Pair], tokenizer: Any, tokens: int, kernel: int = 0) -> Fitted:
    """Pairs whose prompt has at most `tokens` tokens, and whose kernel has at most `kernel` (0: any number)."""
    prompts = _lengths(tokenizer, [module_prompt(pair) for pair in pairs], True)
    if not kernel:
        return _fitted(pairs, prompts, tokens)
    chats = _lengths(tokenizer, [chat_of(pair) for pair in pairs], False)
    own_prompts = _lengths(tokenizer, [pair_prompt(pair) for pair in pairs], True)
    lengths = [
        prompt if chat - own <= kernel else tokens + 1
        for prompt, chat, own in zip(prompts, chats, own_prompts, strict=True)
    ]
    return _fitted(pairs, lengths, tokens)


def _lengths(tokenizer: Any, chats: Sequence[list[Message]], generation_prompt: bool) -> list[int]:
    """Tokens of each chat. The tokenizer's threads share one call."""
    if not chats:
        return []
    render = tokenizer.apply_chat_template
    texts = [render(chat, tokenize=False, add_generation_prompt=generation_prompt) for chat in chats]
    return [len(tokens) for tokens in tokenizer(texts, add_special_tokens=False)["input_ids"]]


def _fitted(pairs: Sequence[Pair], lengths: Sequence[int], limit: int) -> Fitted:
    kept = [(pair, length) for pair, length in zip(pairs, lengths, strict=True) if length <= limit]
    fitted = Fitted(tuple(pair for pair, _ in kept), len(pairs) - len(kept), sum(length for _, length in kept))
    _logger.info("%s", fitted)
    return fitted


def trainable(pairs: Iterable[Pair]) -> list[Pair]:
    """Pairs whose kernel an answer may be like: pure, as prompts demand, and inside of the language of answers."""
    return [pair for pair in pairs if pair.purity is Purity.PURE and pair.measures.inside != 0]


def sft_rows(chats: Sequence[list[Message]], order: Sequence[int], tokenizer: Any, room: int) -> Any:
    """A `datasets.Dataset` of packed sequences in the form that TRL's collator takes: tokens, labels, and row lengths.

    Args:
        order: indices of `chats` in order of training.
        room: most tokens of a sequence; 0: one chat each. The loss covers the assistant's turns.
    """
    import numpy as np
    import pyarrow as pa
    from datasets import Dataset

    encoded = tokenizer.apply_chat_template(
        list(chats), tokenize=True, return_dict=True, return_assistant_tokens_mask=True
    )
    tokens = [np.array(row, np.int64) for row in encoded["input_ids"]]
    masks = [np.array(mask, bool) for mask in encoded["assistant_masks"]]
    labels = [np.where(mask, row, -100) for row, mask in zip(tokens, masks, strict=True)]
    lengths = [len(tokens[index]) for index in order]
    places = pack(lengths, room) if room else ([place] for place in range(len(order)))
    packed = [[order[place] for place in each] for each in places]

    def column(parts: Sequence[Any]) -> Any:
        ends = np.cumsum([0, *(len(part) for part in parts)])
        return pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), np.concatenate(parts))

    columns = {
        "input_ids": column([np.concatenate([tokens[index] for index in each]) for each in packed]),
        "labels": column([np.concatenate([labels[index] for index in each]) for each in packed]),
        "seq_lengths": column([np.array([len(tokens[index]) for index in each]) for each in packed]),
    }
    return Dataset(pa.table(columns))


def grpo_rows(pairs: Iterable[Pair]) -> Any:
    """A `datasets.Dataset` of prompts, each with the id of its pair, for the reward function."""
    from datasets import Dataset

    return Dataset.from_list([{"prompt": module_prompt(pair), "pair": pair.id} for pair in pairs])
