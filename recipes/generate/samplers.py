"""Samplers of answers: a model on this machine, or a model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread
from typing import Any, Protocol

from kernelquarry.pipeline.prompts import Message
from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.provenance import TermsClass
from kernelquarry.recipes.config import EvaluationSection

from .models import fast_dtype, load_model, load_tokenizer, resolve

_IN_FLIGHT = 16  # requests at an endpoint
_TIMEOUT_S = 600.0
_KEYS = ("KERNELQUARRY_API_KEY", "OPENAI_API_KEY")


@dataclass(frozen=True, slots=True)
class Sampled:
    """One answer."""

    index: int  # of its chat
    text: str
    tokens: int  # of the answer, 0 if unknown
    cut: bool = False  # it reached the limit of tokens


class Sampler(Protocol):
    """A source of answers to chats."""

    def sample(self, chats: Sequence[Sequence[Message]], seed: int = 0) -> Iterator[Sampled]:
        """Yield one answer to each chat, in the order in which they end."""
        ...

    def stream(self, chat: Sequence[Message]) -> Iterator[str]:
        """Yield one answer in parts."""
        ...

    def tokens(self, chat: Sequence[Message]) -> int:
        """Number of tokens of the prompt. Raises: UserError: the tokenizer is unknown."""
        ...


def open_sampler(model: str, section: EvaluationSection, endpoint: str = "", chat: str = "", base: str = "") -> Sampler:
    """A sampler of `model` at an `endpoint` (the address before `/chat/completions`), or of a local model without one.

    Args:
        model: name at the endpoint; else as `resolve` takes it.
        base: model of an adapter, if it is not where the adapter says.
        chat: file of `recipes/generate/chat` that replaces the local model's chat template.

    Raises:
        UserError: there is no such model, or its tokenizer has no chat template.
    """
    return EndpointModel(model, endpoint, section) if endpoint else LocalModel(model, section, chat, base)


class LocalModel:
    """A transformers model, loaded when the first answer is wanted. It answers in batches, or in slots."""

    def __init__(self, model: str, section: EvaluationSection, chat: str = "", base: str = "") -> None:
        import torch

        self._path, self._base, self._section = resolve(model), base, section
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._tokenizer = load_tokenizer(self._path, chat)
        self._tokenizer.padding_side = "left"

    @functools.cached_property
    def _model(self) -> Any:
        return load_model(self._path, self._base, dtype=fast_dtype()).to(self._device).eval()

    def sample(self, chats: Sequence[Sequence[Message]], seed: int = 0) -> Iterator[Sampled]:
        import torch

        prompts = [self._prompt(chat) for chat in chats]
        if self._section.slots and prompts:
            torch.manual_seed(seed)
            yield from self._by_slots(prompts)
            return
        order = sorted(range(len(prompts)), key=lambda index: (len(prompts[index]), index))
        for start in range(0, len(order), self._section.batch):
            torch.manual_seed(seed + start)
            batch = order[start : start + self._section.batch]
            try:
                yield from self._batch(batch, [prompts[index] for index in batch])
            except torch.cuda.OutOfMemoryError:
                raise UserError(
                    f"the GPU's memory is full with {len(batch)} answers at once: lower evaluation.batch; "
                    "the same command goes on from here"
                ) from None

    def _batch(self, indices: Sequence[int], prompts: Sequence[str]) -> Iterator[Sampled]:
        import torch

        inputs = self._tokenizer(list(prompts), return_tensors="pt", padding=True, add_special_tokens=False)
        inputs = inputs.to(self._device)
        with torch.inference_mode():
            written = self._model.generate(**inputs, **self._arguments())[:, inputs["input_ids"].shape[1] :]
        ends = self._ends()
        for index, tokens in zip(indices, written.tolist(), strict=True):
            length = next((place + 1 for place, token in enumerate(tokens) if token in ends), 0)
            text = self._tokenizer.decode(tokens[: length or None], skip_special_tokens=True)
            yield Sampled(index, text, length or len(tokens), cut=not length)

    def _by_slots(self, prompts: Sequence[str]) -> Iterator[Sampled]:
        from .decoder import Decoder, Sampling

        section, ends = self._section, self._ends()
        inputs = self._tokenizer(list(prompts), add_special_tokens=False)["input_ids"]
        room = max(map(len, inputs)) + section.new_tokens
        sampling = Sampling(section.temperature, section.top_p, section.new_tokens)
        slots = min(section.batch, len(inputs))
        for index, tokens in Decoder(self._model, ends, slots, room, sampling).run(inputs):
            text = self._tokenizer.decode(tokens, skip_special_tokens=True)
            yield Sampled(index, text, len(tokens), cut=tokens[-1] not in ends)

    def _ends(self) -> set[int]:
        ends = self._model.generation_config.eos_token_id
        return set(ends if isinstance(ends, list) else [ends, self._tokenizer.eos_token_id])

    def tokens(self, chat: Sequence[Message]) -> int:
        return len(self._tokenizer(self._prompt(chat), add_special_tokens=False)["input_ids"])

    def stream(self, chat: Sequence[Message]) -> Iterator[str]:
        from transformers import TextIteratorStreamer

        streamer = TextIteratorStreamer(self._tokenizer, skip_prompt=True, skip_special_tokens=True)
        inputs = self._tokenizer([self._prompt(chat)], return_tensors="pt", add_special_tokens=False).to(self._device)
        thread = Thread(target=self._model.generate, kwargs={**inputs, **self._arguments(), "streamer": streamer})
        thread.start()
        yield from streamer
        thread.join()

    def _prompt(self, chat: Sequence[Message]) -> str:
        text: str = self._tokenizer.apply_chat_template(list(chat), tokenize=False, add_generation_prompt=True)
        return text

    def _arguments(self) -> dict[str, Any]:
        section = self._section
        sampling = {"do_sample": True, "temperature": section.temperature, "top_p": section.top_p, "top_k": 0}
        return {
            "max_new_tokens": section.new_tokens,
            "pad_token_id": self._tokenizer.pad_token_id,
            **(sampling if section.temperature else {"do_sample": False}),
        }


class EndpointModel:
    """A model behind an OpenAI-compatible server, called by the client of `distill`.

    The API key is read from the environment variables `KERNELQUARRY_API_KEY` or `OPENAI_API_KEY`.
    """

    def __init__(self, model: str, endpoint: str, section: EvaluationSection, tries: int = 4) -> None:
        from kernelquarry.transforms.distill.teachers import DistillConfig, Limits, Retries, Teacher, Terms

        self._address = endpoint
        self._teacher = Teacher(
            name="endpoint",
            model=model,
            url=endpoint,
            kind="own",
            terms="own",
            key_env=next((name for name in _KEYS if os.environ.get(name)), ""),
            in_flight=_IN_FLIGHT,
            timeout_s=_TIMEOUT_S,
            max_tokens=section.new_tokens,
            sampling={"temperature": section.temperature, "top_p": section.top_p},
        )
        self._config = DistillConfig(
            teachers=(self._teacher,),
            terms={"own": Terms(training=TermsClass.OWN, source="", read_on="")},  # nothing is trained on the answers
            limits=Limits(usd=math.inf, tokens=sys.maxsize),
            retries=Retries(tries=tries),
        )

    def sample(self, chats: Sequence[Sequence[Message]], seed: int = 0) -> Iterator[Sampled]:
        from kernelquarry.transforms.distill.client import ChatRequest, Client, Unanswered

        with self._user_errors(), Client(self._config, None) as client:
            pending = {
                client.submit(ChatRequest(self._teacher, tuple(chat), seed + index)): index
                for index, chat in enumerate(chats)
            }
            for future in as_completed(pending):
                reply = future.result()
                if reply.finish == "refused":
                    raise Unanswered(reply.content)
                yield Sampled(pending[future], reply.content, reply.completion_tokens, reply.finish == "length")

    def stream(self, chat: Sequence[Message]) -> Iterator[str]:
        from kernelquarry.transforms.distill.client import ChatRequest, Client

        with self._user_errors(), Client(self._config, None) as client:
            yield from client.stream(ChatRequest(self._teacher, tuple(chat), 0))

    def tokens(self, chat: Sequence[Message]) -> int:
        raise UserError("--prompt-tokens is for local models: the tokenizer of an endpoint is unknown: leave it out")

    @contextmanager
    def _user_errors(self) -> Iterator[None]:
        """Turn a missing reply into a `UserError`."""
        from kernelquarry.transforms.distill.client import Unanswered

        try:
            yield
        except Unanswered as error:
            raise UserError(f"{self._address}: {error}: the same command goes on from here") from None
