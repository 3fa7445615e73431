"""One conversation with a teacher: what it was asked, what it answered, and what it was told of its answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelquarry.pipeline.prompts import Message, answer, parse_answer, prompt_id, render_prompt, repair
from kernelquarry.pipeline.schema.ids import canonical
from kernelquarry.pipeline.schema.outcome import DropRecord
from kernelquarry.pipeline.schema.provenance import Distillation, Generator, Turn
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.pipeline.schema.records import Candidate, CounterExample

from .cache import Reply
from .client import Ask
from .teachers import DistillConfig, Route, Teacher

_REPEATED = 20_000  # characters of an answer without code that a teacher is shown again
_SYSTEMS: dict[Route, str] = {"write": "teacher", "refine": "teacher", "explain": "system"}
_WHY = {reason.value: reason.why for reason in Reason}


@dataclass(frozen=True, slots=True)
class Conversation:
    """Of one teacher, route and sample. `asking` are the files that the next question is rendered from."""

    teacher: Teacher
    route: Route
    sample: int
    messages: tuple[Message, ...]
    asking: tuple[str, ...]
    turns: tuple[Turn, ...] = ()

    @classmethod
    def open(cls, teacher: Teacher, route: Route, sample: int, seed: Candidate) -> Conversation:
        system = "system" if teacher.kind == "own" else _SYSTEMS[route]  # ours know what they are asked from training
        values = {"python_code": seed.probed.python_code}
        if route != "write":
            values["triton_code"] = seed.triton_code
        messages = (
            Message(role="system", content=render_prompt(system)),
            Message(role="user", content=render_prompt(route, **values)),
        )
        return cls(teacher, route, sample, messages, (prompt_id(system), prompt_id(route)))

    def ask(self) -> Ask:
        return Ask(self.teacher, self.messages, self.sample)

    def answered(self, reply: Reply) -> Conversation:
        """With the reply to `ask`."""
        turn = Turn(
            prompts=self.asking,
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
        read = parse_answer(reply.content, rename=True)
        said = answer(read.code) if read.code else Message(role="assistant", content=reply.content[:_REPEATED])
        return replace(self, messages=(*self.messages, said), turns=(*self.turns, turn))

    def told(self, loss: DropRecord) -> Conversation:
        """With what was wrong with the last answer."""
        message = repair(_WHY[loss.reason], describe(loss))
        turns = (*self.turns[:-1], replace(self.turns[-1], reason=loss.reason))
        return replace(self, messages=(*self.messages, message), asking=(prompt_id("repair"),), turns=turns)

    def distillation(self, teaching: DistillConfig, served: str, similarity: float) -> Distillation:
        teacher, terms = self.teacher, teaching.terms[self.teacher.terms]
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
            sampling=canonical({**teacher.sampling, teacher.max_tokens_name: teacher.max_tokens}),
            turns=self.turns,
            similarity=similarity,
        )

    def generator(self) -> Generator:
        sampling = canonical({**self.teacher.sampling, self.teacher.max_tokens_name: self.teacher.max_tokens})
        return Generator("model", self.teacher.model, self.teacher.version, sampling)


def describe(loss: DropRecord) -> str:
    """What a teacher is told: the evidence, and the smallest call that shows it."""
    lines = [loss.evidence]
    for example in loss.counter_examples:
        lines.append(f"The smallest call that was found on which it fails: {_call(example)}: {example.found}")
        if example.output:
            lines.append(f"There, {example.output} is {example.actual:g}, and should be {example.expected:g}.")
    return "\n".join(lines)


def _call(example: CounterExample) -> str:
    tensors = [f"{tensor.name}{list(tensor.shape)} {tensor.dtype}" for tensor in example.workload.tensors]
    return f"{', '.join(tensors)}, drawn {example.distribution}"
