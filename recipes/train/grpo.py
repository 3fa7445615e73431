"""GRPO with the verifier as its reward, by TRL's trainer."""

from __future__ import annotations

import importlib.util
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kernelquarry.pipeline.dataset.chat_rows import module_prompt
from kernelquarry.pipeline.sandbox import SandboxSettings
from kernelquarry.pipeline.schema.jsonl_append import add_line
from kernelquarry.pipeline.schema.records import Pair
from kernelquarry.recipes.config import GrpoSection, Recipe, RewardSection
from kernelquarry.recipes.judge.judge_answer import Judgement
from kernelquarry.recipes.judge.reward import reward
from kernelquarry.recipes.judge.verifier_pool import VerifierPool

from .data import fit_prompts, for_grpo, grpo_rows, load_pairs
from .survey import instructive
from .trainer import TrainingJob, TrainResult, lora_config, train_stage, trainer_arguments


def train(job: TrainingJob, settings: SandboxSettings) -> TrainResult:
    """Train on the prompts of the train split. `settings.workers` guests judge answers in parallel.

    Raises: UserError.
    """
    recipe = job.recipe
    with ExitStack() as stack:

        def make_trainer(model: Any, tokenizer: Any, stage: Path) -> Any:
            from trl import GRPOTrainer

            from .rollouts import decode, decode_by_slots, submit_when_finished

            section = recipe.grpo
            candidates = for_grpo(load_pairs(job.dataset, recipe.held_out), recipe.fresh)
            fitted = fit_prompts(candidates, tokenizer, section.prompt_tokens, section.kernel_tokens)
            pairs: Sequence[Pair] = fitted.take("grpo.prompt_tokens (or grpo.kernel_tokens)", recipe.rows)
            timed = recipe.reward.kind == "speed"
            verifiers = stack.enter_context(VerifierPool({pair.id: pair for pair in pairs}, settings, timed=timed))
            if section.survey:
                pairs = instructive(pairs, model, tokenizer, verifiers, section, stage)
            trainer = GRPOTrainer(
                model=model,
                reward_funcs=make_reward_fn(
                    verifiers, recipe.reward, stage / f"answers-{os.environ.get('RANK', '0')}.jsonl"
                ),
                args=_config(recipe, stage),
                train_dataset=grpo_rows(pairs),
                processing_class=tokenizer,
                peft_config=lora_config(section),
            )
            prompts = {}
            for pair in pairs:
                text = tokenizer.apply_chat_template(module_prompt(pair), tokenize=False, add_generation_prompt=True)
                prompts[decode(tokenizer, tokenizer(text, add_special_tokens=False)["input_ids"])] = pair.id
            unwrapped = trainer.accelerator.unwrap_model(trainer.model)
            patch_generate = decode_by_slots if section.rollouts == "slots" else submit_when_finished
            patch_generate(unwrapped, tokenizer, prompts, verifiers.submit)
            return trainer

        return train_stage("grpo", job, recipe.grpo, make_trainer)


def make_reward_fn(verifiers: VerifierPool, section: RewardSection, answers: Path) -> Callable[..., list[float | None]]:
    """A reward function for TRL. It appends every answer with its judgement and reward to the file `answers`.

    The reward of an answer outside of the language is None, which TRL leaves out.
    """
    last = time.monotonic()

    def reward_fn(
        completions: Sequence[Any],
        pair: Sequence[str],
        trainer_state: Any = None,
        log_metric: Callable[[str, float], None] = lambda name, value: None,
        **_: Any,
    ) -> list[float | None]:
        nonlocal last
        texts = [completion if isinstance(completion, str) else completion[-1]["content"] for completion in completions]
        waited = verifiers.waited_s
        judgements = verifiers.judge(pair, texts)
        rewards = [reward(judgement, section) if judgement.is_scored else None for judgement in judgements]
        now = time.monotonic()
        for name, share in shares(judgements).items():
            log_metric(name, share)
        log_metric("reward_wait", (verifiers.waited_s - waited) / max(1e-9, now - last))
        last = now
        step = trainer_state.global_step if trainer_state else 0
        _append(answers, step, pair, judgements, rewards)
        return rewards

    return reward_fn


def shares(judgements: Sequence[Judgement]) -> Mapping[str, float]:
    """Share of answers that are right, and share of each class of hack."""
    hacks = Counter(judgement.hack for judgement in judgements if judgement.hack)
    counts = {"correct": sum(judgement.passes for judgement in judgements)}
    counts |= {f"hack/{name}": hacks[name] for name in sorted(hacks)}
    return {name: count / len(judgements) for name, count in counts.items()}


def _append(
    path: Path, step: int, pairs: Sequence[str], judgements: Sequence[Judgement], rewards: Sequence[float | None]
) -> None:
    for pair, judgement, value in zip(pairs, judgements, rewards, strict=True):
        line = {"step": step, "pair": pair, "why": judgement.why, "evidence": judgement.evidence}
        add_line(path, line | {"reward": value, "code": judgement.code})


def _config(recipe: Recipe, stage: Path) -> Any:
    import torch
    from trl import GRPOConfig

    section, cuda = recipe.grpo, torch.cuda.is_available()
    return GRPOConfig(
        **trainer_arguments(section, recipe.model, stage, section.prompts * section.generations),
        **_rollouts(section, cuda),
        num_generations=section.generations,
        max_completion_length=section.completion_tokens,
        temperature=section.temperature,
        top_p=section.top_p,
        beta=section.beta,
        epsilon=section.epsilon,
        loss_type=section.loss,
        scale_rewards=section.scale,
    )


def _rollouts(section: GrpoSection, cuda: bool) -> dict[str, Any]:
    """TRL's arguments for the way in which answers are generated; "auto" is vLLM if it is installed."""
    kind = section.rollouts
    if kind == "auto":
        kind = "vllm" if cuda and importlib.util.find_spec("vllm") is not None else "transformers"
    arguments: dict[str, dict[str, Any]] = {
        "transformers": {},
        "slots": {},
        "continuous": {"use_transformers_continuous_batching": True},
        "vllm": {"use_vllm": True, "vllm_mode": "colocate"},
    }
    return arguments[kind]
