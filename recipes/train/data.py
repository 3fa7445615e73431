"""From a dataset's pairs to what trainers take: chats for supervised training, prompts for GRPO."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.dataset.chat_rows import examples, pair_prompt, plan
from kernelquarry.pipeline.dataset.rows import read_rows
from kernelquarry.pipeline.prompts import Message, answer, kernel_request
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.ids import sha256
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.transforms.read.compositions import PACKAGE as COMPOSED
from kernelquarry.transforms.split import Shares, with_split

_logger = logging.getLogger(__name__)

_VALIDATION = 0.02  # of the clusters, beside a share that is held out: enough to see what a training overfits


@dataclass(frozen=True, slots=True)
class Fitted:
    """Pairs that fit into the model's context, and how many do not. None is cut."""

    pairs: tuple[Pair, ...]
    too_long: int
    tokens: int  # of those that fit

    def some(self, knob: str, limit: int = 0) -> tuple[Pair, ...]:
        """The pairs, the first `limit` unless that is 0. Raises: UserError, which names `knob`, if there is none."""
        if not self.pairs:
            raise UserError(f"all {self.too_long} rows are longer than {knob} allows: raise it with --set")
        return self.pairs[: limit or None]

    def __str__(self) -> str:
        return f"{len(self.pairs)} rows, {self.tokens:,} tokens; {self.too_long} longer than the context left out"


def load_pairs(dataset: str, held_out: float = 0.0) -> list[Pair]:
    """The pairs of a dataset folder, or of a dataset on the Hub, by id.

    Args:
        dataset: its folder or id; several have commas between.
        held_out: share of the clusters that make the test split, the dataset's own among them; few of the others are
            for validation, the rest for training. 0 keeps the dataset's splits.

    Raises:
        UserError: there is no such dataset, or it is of another schema.
    """
    found = {pair.id: pair for name in dataset.split(",") for pair in read_rows(_folder(name))}
    pairs = [found[id] for id in sorted(found)]
    return [with_split(pair, Shares(min(_VALIDATION, 1 - held_out), held_out)) for pair in pairs] if held_out else pairs


def _folder(dataset: str) -> Path:
    folder = Path(dataset)
    return folder if folder.is_dir() else _download(dataset)


def _download(dataset: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(dataset, repo_type="dataset", allow_patterns="data/pairs/*.parquet"))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        told = str(error).strip().splitlines()[0]
        raise UserError(f"{dataset}: no dataset folder, and not to be had from the Hub: {told}") from None


def split_of(pairs: Iterable[Pair], split: str) -> list[Pair]:
    """The pairs of one split. Raises: UserError if there is none."""
    chosen = [pair for pair in pairs if pair.split == split]
    if not chosen:
        raise UserError(f"the dataset has no rows in its split {split}: build a larger one")
    return chosen


def for_sft(pairs: Iterable[Pair], fresh: float = 0.0) -> list[Pair]:
    """What supervised training has of the train split. Raises: UserError if there is none."""
    return _some([pair for pair in split_of(pairs, "train") if not _is_fresh(pair, fresh)], fresh)


def for_grpo(pairs: Iterable[Pair], fresh: float = 0.0) -> list[Pair]:
    """What GRPO asks for of the train split: the clusters that `for_sft` leaves, or all if it leaves none.

    A model has what it was taught by heart, and its answers to that differ in little; on modules that are new to it,
    it is paid for what it will be evaluated by.

    Raises:
        UserError: there is none.
    """
    given = split_of(pairs, "train")
    return _some([pair for pair in given if _is_fresh(pair, fresh)], fresh) if fresh else given


def _is_fresh(pair: Pair, fresh: float) -> bool:
    """A cluster's place follows from itself alone, and has nothing to do with its split."""
    return int(sha256(f"fresh:{pair.cluster}")[:8], 16) < fresh * 2**32


def _some(pairs: list[Pair], fresh: float) -> list[Pair]:
    if not pairs:
        raise UserError(f"fresh = {fresh:g} leaves one of the trainings without rows: change it with --set")
    return pairs


def mined(pairs: Iterable[Pair]) -> list[Pair]:
    """Those whose modules somebody wrote: composed ones are for training. Raises: UserError if there is none."""
    chosen = [pair for pair in pairs if pair.source.corpus != COMPOSED]
    if not chosen:
        raise UserError("all rows are of composed modules, which are for training: evaluate on mined ones")
    return chosen


def prompt_of(pair: Pair) -> list[Message]:
    """As evaluation asks: for inputs of any size."""
    return kernel_request(pair.python_code)


def chat_of(pair: Pair, thinking: bool = False) -> list[Message]:
    """As the pair's kernel answers: asked for the sizes that it takes, and after thinking what the columns tell."""
    return [*pair_prompt(pair), answer(pair.triton_code, plan(pair) if thinking else "")]


def fit_chats(pairs: Sequence[Pair], tokenizer: Any, tokens: int, thinking: bool = False) -> Fitted:
    """Those whose whole chat has at most `tokens` tokens."""
    return _fitted(pairs, [_length(tokenizer, chat_of(pair, thinking), False) for pair in pairs], tokens)


def fit_prompts(pairs: Sequence[Pair], tokenizer: Any, tokens: int, kernel: int = 0) -> Fitted:
    """Those whose prompt has at most `tokens` tokens, and whose own kernel at most `kernel`, unless that is 0."""
    prompts = [_length(tokenizer, prompt_of(pair), True) for pair in pairs]
    if not kernel:
        return _fitted(pairs, prompts, tokens)
    kernels = [_length(tokenizer, chat_of(pair), False) - _length(tokenizer, pair_prompt(pair), True) for pair in pairs]
    asked = [prompt if own <= kernel else tokens + 1 for prompt, own in zip(prompts, kernels, strict=True)]
    return _fitted(pairs, asked, tokens)


def _length(tokenizer: Any, messages: list[Message], asks: bool) -> int:
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=asks)
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


def _fitted(pairs: Sequence[Pair], lengths: Sequence[int], limit: int) -> Fitted:
    kept = [(pair, length) for pair, length in zip(pairs, lengths, strict=True) if length <= limit]
    fitted = Fitted(tuple(pair for pair, _ in kept), len(pairs) - len(kept), sum(length for _, length in kept))
    _logger.info("%s", fitted)
    return fitted


def taught(pairs: Iterable[Pair]) -> list[Pair]:
    """Those that do what a prompt asks for: kernels alone, for inputs of any size or of some."""
    return [pair for pair in pairs if examples(pair)]


def sft_rows(pairs: Iterable[Pair], thinking: bool = False) -> Any:
    """A `datasets.Dataset` of chats."""
    from datasets import Dataset

    return Dataset.from_list([{"messages": chat_of(pair, thinking)} for pair in pairs])


def grpo_rows(pairs: Iterable[Pair]) -> Any:
    """A `datasets.Dataset` of prompts, each with the id of its pair, by which the reward finds the module."""
    from datasets import Dataset

    return Dataset.from_list([{"prompt": prompt_of(pair), "pair": pair.id} for pair in pairs])
