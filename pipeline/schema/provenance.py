"""The provenance of a record: source, licence, author of the kernel, and machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class SourceRef:
    """One file of one revision of one package or repository."""

    corpus: str  # name of the run's corpus: `tiny`, `default`, or the name of a folder
    package: str  # distribution name, or repository as `owner/name`
    revision: str  # version, or commit
    path: str  # POSIX path of the file inside the package
    sha256: str  # SHA-256 of the file's bytes


@dataclass(frozen=True, slots=True)
class Licence:
    """The licence of a file."""

    spdx: str  # SPDX expression; `NOASSERTION` if none was found
    evidence: str  # files or fields that state the licence, most specific first


@dataclass(frozen=True, slots=True)
class Generator:
    """The author of a candidate: a compiler, a language model, or the library of operators."""

    kind: str  # `inductor`, `model` or `library`
    name: str  # `torch.inductor`, the model's name, or `kernelquarry.operators`
    version: str  # torch's version, the model's revision, or ours
    options: str  # canonical JSON: target and compiler options, or sampling parameters


class TermsClass(StrEnum):
    """The position of a teacher's licence or terms of use on training models with its answers."""

    PERMITS = "permits"  # training is permitted
    OWN = "own"  # the model is ours
    UNKNOWN = "unknown"  # the terms do not say
    FORBIDS = "forbids"  # training is forbidden


@dataclass(frozen=True, slots=True)
class Turn:
    """One request to a teacher, its answer, and the cost of both."""

    prompts: tuple[str, ...]  # templates that the request was rendered from, each with its digest
    asked: str  # user message of the request
    answered: str  # complete answer of the teacher
    thinking: str  # reasoning that the endpoint returned separately
    reason: str  # code of the `Reason` for the rejection; empty for the last answer, which the row itself judges
    finish: str  # why the endpoint stopped: `stop`, `length`, ...
    request: str  # hash of the request
    sample: int  # number of the sample of that request
    prompt_tokens: int  # tokens of the request, as the endpoint counted, else estimated
    completion_tokens: int  # tokens of the answer, likewise
    cost_usd: float  # US dollars


@dataclass(frozen=True, slots=True)
class Distillation:
    """How a teacher wrote an answer, and the terms under which the answer may be used."""

    teacher: str  # model's name in the table of teachers
    model: str  # model name in the request
    served: str  # model name in the endpoint's reply
    version: str  # revision of the weights, or of the endpoint
    endpoint: str  # `hosted`, `vllm`, `sglang`, `transformers` or `own`
    terms: TermsClass  # position of the model's terms of use on training with its answers
    terms_source: str  # where the terms were read, and when
    route: str  # `write`, `refine` or `explain`
    system: str  # system message
    sampling: str  # canonical JSON of the sampling parameters
    turns: tuple[Turn, ...]  # the conversation; more than one turn if the teacher repaired its answer
    # similarity to the module's lowered kernel: Jaccard index over runs of five tokens; 0 without a lowered kernel
    similarity: float

    @property
    def cost_usd(self) -> float:
        return sum(turn.cost_usd for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A model's explanation of a verified pair, if the code supports it."""

    instruction: str  # how a user would ask for the kernel
    reasoning: str  # the way from the module to the kernel
    distillation: Distillation  # model that wrote the explanation


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine and software that a verdict or timing was made on."""

    python: str  # version of Python
    torch: str  # version of torch
    triton: str  # version of triton
    device: str  # `cpu-interpreter`, or the name of the GPU
    driver: str  # version of the GPU's driver; empty on the CPU
    sandbox: str  # canonical JSON: each layer of the sandbox and its state
