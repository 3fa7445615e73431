"""A conversation with a teacher: the request, the answer, and a repair prompt that names the answer's failure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelquarry.pipeline.prompts import Message, answer, parse_answer, prompt_id, render_prompt, repair_request
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.provenance import Distillation, Generator, Turn
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, CounterExample
from kernelquarry.transforms.tidy.supported_inputs import made_shapes, supported_inputs

from .cache import Reply
from .client import ChatRequest
from .teachers import DistillConfig, Route, Teacher

_REPEATED = 20_000  # characters of an answer without code that stay in the conversation
_SYSTEM_PROMPTS: dict[Route, str] = {"write": "teacher", "refine": "teacher", "explain": "system"}
_WHY = {reason.value: reason.why for reason in Reason}


@dataclass(frozen=True, slots=True)
class Conversation:
    """An immutable conversation of one teacher, route and sample."""

    teacher: Teacher
    route: Route
    sample: int
    messages: tuple[Message, ...]
    prompts: tuple[str, ...]  # ids of the prompt files that the next request is rendered from
    turns: tuple[Turn, ...] = ()

    @classmethod
    def open(cls, teacher: Teacher, route: Route, sample: int, seed: Candidate) -> Conversation:
        """A conversation with its first prompt. `seed`: the module's kernel, which the route "write" does not show."""
        # Our own models are trained on the plain system prompt.
        system = "system" if teacher.kind == "own" else _SYSTEM_PROMPTS[route]
        guards = seed.guards if seed.triton_code else None
        sizes = supported_inputs(seed.probed.workloads, guards, general=True)
        shapes = made_shapes(seed.probed.shapes, seed.probed.workloads, guards, general=True)
        given = {"python_code": seed.probed.python_code, "triton_code": seed.triton_code}
        messages = (
            Message(role="system", content=render_prompt(system)),
            Message(role="user", content=render_prompt(route, **given, sizes=sizes, shapes=shapes)),
        )
        return cls(teacher, route, sample, messages, (prompt_id(system), prompt_id(route)))

    def request(self) -> ChatRequest:
        return ChatRequest(self.teacher, self.messages, self.sample)

    def with_reply(self, reply: Reply) -> Conversation:
        """The conversation after the reply to `request()`."""
        turn = Turn(
            prompts=self.prompts,
            asked=self.messages[-1]["content"],
            answered=reply.content,
            thinking=reply.thinking,
            reason="",
            finish=reply.finish,
            request=reply.request,
            sample=reply.sample,
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost_usd=reply.cost_usd,
        )
        code = parse_answer(reply.content, rename=True).code
        message = answer(code) if code else Message(role="assistant", content=reply.content[:_REPEATED])
        return replace(self, messages=(*self.messages, message), turns=(*self.turns, turn))

    def with_repair_prompt(self, drop: DropRecord) -> Conversation:
        """The conversation after a prompt that says why the last answer was dropped."""
        message = repair_request(_WHY[drop.reason], describe_failure(drop))
        turns = (*self.turns[:-1], replace(self.turns[-1], reason=drop.reason))
        return replace(self, messages=(*self.messages, message), prompts=(prompt_id("repair"),), turns=turns)

    def distillation(self, config: DistillConfig, served: str, similarity: float) -> Distillation:
        """The provenance of the last answer. `served`: model name that the endpoint reports."""
        teacher, terms = self.teacher, config.terms[self.teacher.terms]
        return Distillation(
            teacher=teacher.name,
            model=teacher.model,
            served=served,
            version=teacher.version,
            endpoint=teacher.kind,
            terms=terms.training,
            terms_source=f"{terms.source}, read on {terms.read_on}",
            route=self.route,
            system=self.messages[0]["content"],
            sampling=self._sampling,
            turns=self.turns,
            similarity=similarity,
        )

    def generator(self) -> Generator:
        return Generator("model", self.teacher.model, self.teacher.version, self._sampling)

    @property
    def _sampling(self) -> str:
        return canonical({**self.teacher.sampling, self.teacher.max_tokens_name: self.teacher.max_tokens})


def describe_failure(drop: DropRecord) -> str:
    """Text of a repair prompt: the evidence, and the smallest failing call."""
    lines = [drop.evidence]
    for example in drop.counter_examples:
        lines.append(f"The smallest call that was found on which it fails: {_call(example)}: {example.found}")
        if example.output:
            lines.append(f"There, {example.output} is {example.actual:g}, and should be {example.expected:g}.")
    return "\n".join(lines)


def _call(example: CounterExample) -> str:
    tensors = [f"{tensor.name}{list(tensor.shape)} {tensor.dtype}" for tensor in example.workload.tensors]
    return f"{', '.join(tensors)}, drawn {example.distribution}"
