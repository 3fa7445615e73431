"""The stages of the pipeline, in order. Read this first.

A stage reads the records that the stage before it kept and leaves its own, as shards in the run directory. Its code
is in `transforms/<stage>/`: `transform.py` holds the Beam transform that is named here, the other files hold the work
itself, without Beam. Names and order of the command line, the report and the docs come from this list. Importing this
module loads no Beam.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from .schema.records import Candidate, Lowered, Module, Pair, Probed, SourceFile, TrainingPair, Variant, Verified

if TYPE_CHECKING:
    from kernelquarry.transforms.stage_transform import StageTransform


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a module's way to a row."""

    name: str
    input_type: type | None  # record that it reads; None for the first stage
    output_type: type
    transform: str  # class in `transforms/<folder>/transform.py`
    does: str  # for people: help texts and docs
    unit: str = "module"
    lines: tuple[tuple[str, str], ...] = ()  # (line of the funnel, its unit) where a stage counts more than one thing
    folder: str = ""  # of `transforms/`; "": the stage's name
    reads_from: str = ""  # stage whose records it reads; "": the one before it
    extra_input: str = ""  # stage whose records it reads too, where the run has them

    @property
    def counted(self) -> tuple[tuple[str, str], ...]:
        """(line of the funnel, its unit) of each thing that the stage counts; its own line is the last."""
        return self.lines or ((self.name, self.unit),)

    @property
    def module(self) -> str:
        """Name of the module with the stage's transform, below `kernelquarry`. The fingerprint follows its imports."""
        return f"transforms.{self.folder or self.name}.transform"

    def load(self) -> type[StageTransform]:
        """Import the stage's transform, and so Beam."""
        found: type[StageTransform] = getattr(import_module(f"kernelquarry.{self.module}"), self.transform)
        return found


STAGES = (
    Stage("read", None, SourceFile, "ReadCorpus", "read every Python file of the corpus, with its licence", "file"),
    Stage("mine", SourceFile, Module, "MineTrees", "find nn.Module classes and all that they need; no code is run",
          lines=(("scan", "file"), ("mine", "class"))),
    Stage("probe", Module, Probed, "ProbeModules", "find constructor arguments and inputs that a module runs on"),
    # Copies, problems of a benchmark and modules over a cap are known without a kernel, so none of them is lowered.
    Stage("deduplicate", Probed, Probed, "DeduplicateModules", "drop modules that copy another one",
          extra_input="slice"),
    Stage("decontaminate", Probed, Probed, "DecontaminateModules", "drop modules that overlap a benchmark's problems"),
    Stage("balance", Probed, Probed, "BalanceModules", "cap the modules of one cluster, operator set and package"),
    Stage("lower", Probed, Lowered, "LowerModules", "compile to Inductor's Triton source; no GPU is needed"),
    Stage("tidy", Lowered, Candidate, "TidyKernels", "rewrite that source as one readable, self-contained file"),
    Stage("verify", Candidate, Verified, "VerifyCandidates", "run the module and the kernel apart, and compare them"),
    Stage("distill", Verified, Verified, "DistillKernels", "ask models for more kernels, if teachers are configured",
          lines=(("teach", "module"), ("distill", "candidate")), extra_input="balance"),
    Stage("screen", Verified, Pair, "ScreenPairs", "drop pairs that are not worth a row"),
    Stage("split", Pair, Pair, "SplitPairs", "assign clusters to train, validation and test", "pair"),
    Stage("targets", Pair, Pair, "CompileForTargets", "compile kernels for further GPUs that settings name", "pair"),
    Stage("time", Pair, Pair, "TimePairs", "time kernels against eager and torch.compile on a GPU", "pair"),
)  # fmt: skip
# After the last stage, `run/products.py` annotates the pairs and writes the dataset and the report.

# Stages that run when they are asked for.
SLICES = "+slices"  # end of the name of a corpus whose modules are cut into slices too
SLICE = Stage("slice", Probed, Probed, "SliceModules", "cut probed modules into small ones", unit="piece",
              lines=(("cut", "module"), ("slice", "piece")), reads_from="probe")  # fmt: skip
# The steps of these are functions of the stages above.
BACKWARD = Stage("backward", Probed, TrainingPair, "MakeBackwardRows", "make rows with gradients",
                 folder="variants", reads_from="balance")  # fmt: skip
VARIANTS = (
    Stage("float16", Probed, Variant, "MakeFloat16Rows", "make rows with kernels in float16",
          folder="variants", reads_from="balance"),
    Stage("bfloat16", Probed, Variant, "MakeBfloat16Rows", "make rows with kernels in bfloat16",
          folder="variants", reads_from="balance"),
    Stage("autotuned", Lowered, Variant, "MakeAutotunedRows", "make rows with autotuned kernels",
          folder="variants", reads_from="lower"),
    Stage("operators", Probed, Variant, "MakeOperatorRows", "make rows with a kernel for each operator",
          folder="variants", reads_from="balance"),
)  # fmt: skip
ALL = (*STAGES, BACKWARD, *VARIANTS, SLICE)  # a stage's place is the number of its folder
_CUT = STAGES.index(next(stage for stage in STAGES if stage.extra_input == SLICE.name))
ORDER = (*STAGES[:_CUT], SLICE, *STAGES[_CUT:], BACKWARD, *VARIANTS)  # in which stages run


def before(stage: Stage) -> Stage:
    """The stage whose records `stage` reads."""
    return named(stage.reads_from) if stage.reads_from else ALL[ALL.index(stage) - 1]


def named(name: str) -> Stage:
    """The stage of that name. Raises: StopIteration: there is none."""
    return next(stage for stage in ALL if stage.name == name)
