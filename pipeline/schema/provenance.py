"""The provenance of a record: source, licence, author of the kernel, and machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class SourceRef:
    """One file of one revision of one package or repository."""

    corpus: str  # name of the run's corpus: "tiny", "default", or the name of a folder
    package: str  # distribution name, or repository "owner/name"
    revision: str  # version, or commit
    path: str  # POSIX path inside the package
    sha256: str  # of the file's bytes


@dataclass(frozen=True, slots=True)
class Licence:
    spdx: str  # SPDX expression, "NOASSERTION" if none was found
    evidence: str  # files or fields that state the licence, most specific first


@dataclass(frozen=True, slots=True)
class Generator:
    """The author of a candidate: a compiler or a language model."""

    kind: str  # "inductor" or "model"
    name: str  # "torch.inductor", or the name of the model
    version: str  # version of torch, or revision of the model
    options: str  # canonical JSON: target, dynamic shapes, decompositions; or sampling parameters


class TermsClass(StrEnum):
    """The position of a teacher's licence or terms of use on training models with its answers."""

    PERMITS = "permits"
    OWN = "own"  # the model is ours
    UNKNOWN = "unknown"
    FORBIDS = "forbids"


@dataclass(frozen=True, slots=True)
class Turn:
    """One request to a teacher, its answer, and the cost of both."""

    prompts: tuple[str, ...]  # template files that the request was rendered from, each with its digest
    asked: str  # user message of the request
    answered: str  # complete answer of the teacher
    thinking: str  # reasoning that the endpoint returned separately
    reason: str  # code of the `Reason` for the rejection; "" for the last turn, which the row itself judges
    finish: str  # why the endpoint stopped: "stop", "length", ...
    request: str  # hash of the request
    sample: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Distillation:
    """How a teacher wrote an answer, and the terms under which the answer may be used."""

    teacher: str  # name in the table of teachers
    model: str  # model name in the request
    served: str  # model name in the endpoint's reply
    version: str  # revision of the weights, or of the API
    endpoint: str  # "hosted", "vllm", "sglang", "transformers" or "own"
    terms: TermsClass
    terms_source: str  # where the terms were read, and when
    route: str  # "write", "refine" or "explain"
    system: str  # system message
    sampling: str  # canonical JSON of the sampling parameters
    turns: tuple[Turn, ...]  # more than one if the teacher repaired its answer
    similarity: float  # Jaccard, to the module's lowered kernel; 0 without one

    @property
    def cost_usd(self) -> float:
        return sum(turn.cost_usd for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Explanation:
    """A model's explanation of a verified pair, if the code supports it."""

    instruction: str  # how a user would ask for the kernel
    reasoning: str  # the way from the module to the kernel
    distillation: Distillation


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine and software that a verdict or timing was made on."""

    python: str
    torch: str
    triton: str
    device: str  # "cpu-interpreter", or the name of the GPU
    driver: str  # GPU driver, "" on the CPU
    sandbox: str  # canonical JSON: layer of the sandbox -> its state
