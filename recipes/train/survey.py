"""The prompts that GRPO learns from: answers that are all right, or all wrong, have equal rewards and teach nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.dataset.chat_rows import module_prompt
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.jsonl_append import add_line
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.recipes.config import GrpoSection
from kernelquarry.recipes.generate.decoder import Decoder, Sampling
from kernelquarry.recipes.generate.models import end_tokens
from kernelquarry.recipes.judge.judge_answer import Judgement
from kernelquarry.recipes.judge.verifier_pool import VerifierPool

_logger = logging.getLogger(__name__)


def instructive(
    pairs: Sequence[Pair], model: Any, tokenizer: Any, verifiers: VerifierPool, section: GrpoSection, stage: Path
) -> list[Pair]:
    """The pairs of whose `section.survey` answers a share in `section.right` is right.

    The devices share the pairs. What they count is kept in `stage`, and read again when the stage resumes.

    Raises:
        UserError: there is no such pair.
    """
    from accelerate import PartialState

    state = PartialState()
    known = _counted(stage)
    own = [pair for pair in pairs if pair.id not in known][state.process_index :: state.num_processes]
    if own:
        path = stage / f"survey-{state.process_index}.jsonl"
        _survey(own, model, tokenizer, verifiers, section, path, state.device)
    state.wait_for_everyone()
    known, (least, most) = _counted(stage), section.right
    kept = [pair for pair in pairs if least <= known[pair.id] / section.survey <= most]
    if not kept:
        raise UserError(f"no module has a share of right answers in grpo.right, {least:g} to {most:g}: widen it")
    _logger.info("%d of %d modules have %g to %g of their answers right", len(kept), len(pairs), least, most)
    return kept


def _counted(stage: Path) -> Mapping[str, int]:
    """Right answers to each pair that was surveyed."""
    lines = [line for path in sorted(stage.glob("survey-*.jsonl")) for line in path.read_text().splitlines()]
    return {entry["pair"]: entry["right"] for entry in map(json.loads, lines)}


def _survey(
    pairs: Sequence[Pair],
    model: Any,
    tokenizer: Any,
    verifiers: VerifierPool,
    section: GrpoSection,
    path: Path,
    device: Any,
) -> None:
    """Judge answers while others are written, and append the number of right ones of each pair to `path`."""
    import torch
    from tqdm import tqdm

    from .rollouts import decode, frozen_copy

    chats = [module_prompt(pair) for pair in pairs for _ in range(section.survey)]
    texts = [tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats]
    prompts = tokenizer(texts, add_special_tokens=False)["input_ids"]
    writer = frozen_copy(model, torch.bfloat16 if device.type == "cuda" else None).to(device)
    slots, room = section.prompts * section.generations, max(map(len, prompts)) + section.completion_tokens
    sampling = Sampling(section.temperature, section.top_p, section.completion_tokens)
    decoder = Decoder(writer, end_tokens(model.generation_config), min(slots, len(prompts)), room, sampling)
    judged: dict[str, list[Future[Judgement]]] = {pair.id: [] for pair in pairs}
    for index, answer in tqdm(decoder.run(prompts), "survey", len(prompts), unit="answer"):
        pair = pairs[index // section.survey]
        judged[pair.id].append(verifiers.submit(pair.id, decode(tokenizer, answer)))
    for id, answers in judged.items():
        add_line(path, {"pair": id, "right": sum(answer.result().passes for answer in answers)})
    del writer, decoder
    torch.cuda.empty_cache()
