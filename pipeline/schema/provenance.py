"""Where a record came from: source, licence, generator, machine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class SourceRef:
    """One file of one revision of one package or repository."""

    corpus: str  # name of the corpus that the run was given: "tiny", "default", a folder's name
    package: str  # distribution name, or repository "owner/name"
    revision: str  # version, or commit
    path: str  # POSIX path inside the package
    sha256: str  # of the file's bytes


@dataclass(frozen=True, slots=True)
class Licence:
    spdx: str  # SPDX expression, "NOASSERTION" where none was found
    evidence: str  # what it was read from, most specific first


@dataclass(frozen=True, slots=True)
class Generator:
    """What wrote a candidate."""

    kind: str  # "inductor" or "model"
    name: str  # "torch.inductor", or the model's name
    version: str  # torch's version, or the model's revision
    options: str  # canonical JSON: target, dynamic shapes, decompositions; or sampling parameters


class TermsClass(StrEnum):
    """What a teacher's licence or terms of use say of training models on its answers."""

    PERMITS = "permits"
    OWN = "own"  # the model is ours
    UNKNOWN = "unknown"
    FORBIDS = "forbids"


@dataclass(frozen=True, slots=True)
class Turn:
    """One question to a teacher, its answer, and what they cost."""

    prompts: tuple[str, ...]  # the files that the question was rendered from, each with its digest
    asked: str  # the user's message
    answered: str  # the teacher's, whole
    thinking: str  # what the endpoint gave apart from the answer
    reason: str  # code of the `Reason` why the answer was rejected; "" for the last turn, which the row itself judges
    finish: str  # why the endpoint stopped: "stop", "length", ...
    request: str  # hash of the request
    sample: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Distillation:
    """How a model came to write what it wrote, and by what right it is used."""

    teacher: str  # its name in the table of teachers
    model: str  # as it was asked for
    served: str  # as the endpoint named it
    version: str  # revision of the weights, or of the API
    endpoint: str  # "hosted", "vllm", "sglang", "transformers" or "own"
    terms: TermsClass
    terms_source: str  # where the terms were read, and when
    route: str  # "write", "refine" or "explain"
    system: str  # the system's message
    sampling: str  # canonical JSON
    turns: tuple[Turn, ...]  # more than one if it was asked to repair its answer
    similarity: float  # of its source to the lowered kernel's of the same module, Jaccard; 0 if there is none

    @property
    def cost_usd(self) -> float:
        return sum(turn.cost_usd for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a model said of a verified pair, as far as the code bears it out."""

    instruction: str  # how somebody would ask for the kernel
    reasoning: str  # how one comes from the module to the kernel
    distillation: Distillation


@dataclass(frozen=True, slots=True)
class Environment:
    """What a verdict was reached on."""

    python: str
    torch: str
    triton: str
    device: str  # "cpu-interpreter", or the GPU's name
    driver: str  # GPU driver, "" on the CPU
    sandbox: str  # canonical JSON: layer -> what was active
