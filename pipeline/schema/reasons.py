"""The reasons for which records are dropped. `make docs` generates `docs/reference/reasons.md` from them."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """A reason for a drop: a stable code (`.value`), the stage that gives it, and a sentence (`.why`)."""

    stage: str
    why: str

    def __new__(cls, code: str, stage: str = "", why: str = "") -> Reason:  # `Reason(code)` looks a reason up
        member = object.__new__(cls)
        member._value_ = code
        member.stage, member.why = stage, why
        return member

    # read: one unit is a file of an archive or folder
    NOT_PYTHON = ("not_python", "read", "the file holds null bytes, or its path leads out of the tree or occurs twice")
    TOO_LARGE = ("too_large", "read", "the file is larger than the limit")
    UNDECODABLE = ("undecodable", "read", "the file is not text in its declared encoding")
    NO_TORCH = ("no_torch", "read", "the file does not mention torch (in a table: all such files of one piece)")
    NO_CONTENT = ("no_content", "read", "the table row has no content")
    NO_PACKAGE = ("no_package", "read", "the package index no longer offers the pinned file, or it is damaged")
    BLOB_REFUSED = ("blob_refused", "read", "the archive refused to serve the file's content")
    LICENCE_NOT_PERMISSIVE = ("licence_not_permissive", "read", "no permissive licence covers the file")
    OPTED_OUT = ("opted_out", "read", "its repository, package or author is on the opt-out list")

    # scan: one unit is a file
    NO_MODULE = ("no_module", "scan", "the file defines no class that derives from nn.Module")
    DUPLICATE_PATH = ("duplicate_path", "scan", "the corpus holds another file with this path and revision")
    UNPARSABLE = ("unparsable", "scan", "the file does not parse as Python 3")

    # mine: one unit is a class
    UNRESOLVED_NAME = ("unresolved_name", "mine", "the class needs a definition that was not found")
    FORBIDDEN_IMPORT = ("forbidden_import", "mine", "the class needs a package that is not on the allow-list")
    NO_FORWARD = ("no_forward", "mine", "neither the class nor its bases in the tree define forward")
    TOO_MANY_DEFINITIONS = ("too_many_definitions", "mine", "the class needs more definitions than the limit")
    NAME_CONFLICT = ("name_conflict", "mine", "the class needs two definitions that have the same name")
    ABSTRACT = ("abstract", "mine", "the class is abstract or its forward only raises")
    PART_OF_COMPOSED = ("part_of_composed", "mine", "the class is already part of a composed module")
    DUPLICATE_SOURCE = ("duplicate_source", "mine", "the same self-contained source was mined before")
    SYNTAX_ERROR = ("syntax_error", "mine", "the class or a definition that it needs does not compile as Python 3")

    # probe: one unit is a module, here and in all later stages
    IMPORT_FAILED = ("import_failed", "probe", "the source does not import")
    NO_CONSTRUCTOR_ARGUMENTS = ("no_constructor_arguments", "probe", "no constructor arguments were found that work")
    NO_WORKLOAD = ("no_workload", "probe", "no inputs were found on which forward runs")
    RANDOM = ("random", "probe", "two runs in eval mode gave different outputs")
    CONSTANT_OUTPUT = ("constant_output", "probe", "the output does not depend on the input")
    RETURNS_INPUT = ("returns_input", "probe", "the output is the input, or a view of it")
    CHANGES_INPUT = ("changes_input", "probe", "forward writes into its input")
    NO_TENSOR_OUTPUT = ("no_tensor_output", "probe", "forward returns no floating-point tensor")
    NOT_FINITE = ("not_finite", "probe", "the output on ordinary inputs holds NaN or infinity")
    TOO_BIG = ("too_big", "probe", "its parameters, activations or operators exceed a limit")

    # slice: one unit is a module, or a piece of one
    NOT_DRAWN = ("not_drawn", "slice", "only a share of the modules is cut, and the module is not in it")
    SIZE_FROM_OUTSIDE = ("size_from_outside", "slice", "a size in the piece follows from a tensor outside of it")
    NOT_WRITTEN = (
        "not_written",
        "slice",
        "the piece has no short source text or no possible input; or no kernel of a library computes a call",
    )
    OVER_PATTERN = ("over_pattern", "slice", "the limit on pieces of one pattern was reached")
    SAME_PIECE = ("same_piece", "slice", "another module has the same piece")

    # lower
    GRAPH_BREAK = ("graph_break", "lower", "forward depends on tensor values or cannot be traced")
    RANDOM_OP = ("random_op", "lower", "the graph draws random numbers")
    UNSUPPORTED_OP = ("unsupported_op", "lower", "Inductor has no lowering for an operator")
    STATEFUL = ("stateful", "lower", "forward changes the module's state")
    NOTHING_TO_LOWER = ("nothing_to_lower", "lower", "the graph needs no kernel: it only views or copies")
    NO_GRADIENT = ("no_gradient", "lower", "no gradient flows from an output to a parameter or an input")
    TOO_MANY_KERNELS = ("too_many_kernels", "lower", "the graph has more kernels than the limit")

    # tidy
    NOT_TIDIED = ("not_tidied", "tidy", "the generated code has a form that tidy does not support")
    NOTHING_TO_TUNE = ("nothing_to_tune", "tidy", "no kernel can be autotuned, because none may safely run twice")
    CONSTRUCTOR_NEEDS_IMPORT = ("constructor_needs_import", "tidy", "the constructor needs a package other than torch")

    # verify
    DOES_NOT_LOAD = ("does_not_load", "verify", "the candidate does not import or construct")
    STATE_DIFFERS = ("state_differs", "verify", "the candidate's state_dict has other names, shapes or initial values")
    DOES_NOT_RUN = ("does_not_run", "verify", "the candidate raised or crashed when it ran")
    DOES_NOT_COMPILE = ("does_not_compile", "verify", "a kernel does not compile for a target")
    WRONG_CONTRACT = ("wrong_contract", "verify", "structure, shape, dtype or aliasing of the outputs differ")
    WRONG_VALUES = ("wrong_values", "verify", "an output is further from the oracle than allowed")
    NOT_DETERMINISTIC = ("not_deterministic", "verify", "two runs on the same inputs gave different outputs")
    OUTPUT_NOT_FROM_KERNEL = ("kernel_unused", "verify", "the outputs do not come from the kernels")
    OUTSIDE_LANGUAGE = (
        "outside_language",
        "verify",
        "the source leaves the language of candidates, so nothing was run",
    )
    UNVERIFIED_PATH = ("untried_path", "verify", "forward takes an unverified path for large inputs or later calls")
    PLAN_DIFFERS = ("plan_differs", "verify", "Python did something else than the source plans")
    UNTRACEABLE = ("untraceable", "verify", "the candidate cannot be traced, and the run requires traces")
    IMPOSTOR_PASSES = ("impostor_passes", "verify", "a trivial answer passes too, so passing is no evidence")
    ORACLE_FAILED = ("oracle_failed", "verify", "the reference does not run in float64, or its output is not finite")

    # distill: one unit is a model's answer; the reasons of verify apply too
    NO_ANSWER = ("no_answer", "distill", "the endpoint refused the request, or its answer was empty or cut off")
    NO_CODE = ("no_code", "distill", "the answer has no ModelNew that launches a Triton kernel")
    UNSUPPORTED_EXPLANATION = ("not_borne_out", "distill", "the explanation is empty or contradicts the code")
    DUPLICATE_ANSWER = ("answered_before", "distill", "the code equals the lowered kernel or another answer")

    # any stage that runs a guest
    TIMED_OUT = ("timed_out", "guest", "the guest did not end before its deadline")
    OUT_OF_MEMORY = ("out_of_memory", "guest", "the guest exceeded its memory limit")
    CRASHED = ("crashed", "guest", "the guest was killed by a signal, exited early, or returned nothing")

    # screen
    TRIVIAL = ("trivial", "screen", "the kernel does too little to learn from")
    TOO_LONG = ("too_long", "screen", "the pair is longer than the limit")
    NOISE = ("noise", "screen", "too many characters are not ASCII")
    PERSONAL = ("personal", "screen", "the text holds an e-mail address or a telephone number")
    SECRET = ("secret", "screen", "the text holds something that looks like a credential")

    # balance
    OVER_CLUSTER = ("over_cluster", "balance", "the limit on modules of one cluster was reached")
    OVER_OPERATORS = ("over_operators", "balance", "the limit on modules with the same operators was reached")
    OVER_REPOSITORY = ("over_repository", "balance", "the limit on modules of one package was reached")

    # deduplicate
    DUPLICATE_EXACT = ("duplicate_exact", "deduplicate", "a kept module differs only in formatting and comments")
    DUPLICATE_RENAMED = ("duplicate_renamed", "deduplicate", "a kept module differs only in names")
    DUPLICATE_BEHAVIOUR = ("duplicate_behaviour", "deduplicate", "a kept module gives the same outputs")
    DUPLICATE_NEAR = ("duplicate_near", "deduplicate", "a kept module has nearly the same code")

    # decontaminate
    CONTAMINATED = ("contaminated", "decontaminate", "the module overlaps a benchmark problem")
