"""Where a record came from: source, licence, generator, machine."""

from __future__ import annotations

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class Environment:
    """What a verdict was reached on."""

    python: str
    torch: str
    triton: str
    device: str  # "cpu-interpreter", or the GPU's name
    driver: str  # GPU driver, "" on the CPU
    sandbox: str  # canonical JSON: layer -> what was active
