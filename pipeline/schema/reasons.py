"""Why a record was dropped: one code a reason, one sentence each. `docs/reasons.md` is made from it."""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """`Reason.NAME` has a stable code (`.value`), the stage that gives it, and a sentence (`.why`)."""

    stage: str
    why: str

    def __new__(cls, code: str, stage: str, why: str) -> Reason:
        member = object.__new__(cls)
        member._value_ = code
        member.stage, member.why = stage, why
        return member

    # read: one unit is a file of an archive or folder
    NOT_PYTHON = ("not_python", "read", "the file is not Python source")
    TOO_LARGE = ("too_large", "read", "the file is larger than the limit")
    UNDECODABLE = ("undecodable", "read", "the file is not text in its declared encoding")
    NO_TORCH = (
        "no_torch",
        "read",
        "files that do not mention torch; all those of a piece of a table are one unit",
    )
    NO_CONTENT = ("no_content", "read", "the row of a table has no content")
    BLOB_REFUSED = ("blob_refused", "read", "the archive that holds the content does not give it out")
    LICENCE_NOT_PERMISSIVE = ("licence_not_permissive", "read", "no permissive licence covers the file")
    OPTED_OUT = ("opted_out", "read", "its repository, package or author is on the opt-out list")

    # scan: one unit is a file
    NO_MODULE = ("no_module", "scan", "the file defines no class that derives from nn.Module")
    DUPLICATE_PATH = ("duplicate_path", "scan", "the source holds another file of this path and revision")
    UNPARSABLE = ("unparsable", "scan", "the file is not Python 3 that parses")

    # mine: one unit is a class
    UNRESOLVED_NAME = ("unresolved_name", "mine", "the class needs a definition that was not found")
    FORBIDDEN_IMPORT = ("forbidden_import", "mine", "the class needs a package that is not on the allow-list")
    NO_FORWARD = ("no_forward", "mine", "neither the class nor its bases in the tree define forward")
    TOO_MANY_DEFINITIONS = ("too_many_definitions", "mine", "the class needs more definitions than the limit")
    NAME_CONFLICT = ("name_conflict", "mine", "two files define one name that the class needs both of")
    ABSTRACT = ("abstract", "mine", "the class is abstract or its forward only raises")
    PART_OF_COMPOSED = ("part_of_composed", "mine", "the class is a part of a composed module")
    DUPLICATE_SOURCE = ("duplicate_source", "mine", "the same self-contained source was mined before")
    SYNTAX_ERROR = ("syntax_error", "mine", "the class or a definition that it needs is not Python 3 that compiles")

    # probe: one unit is a module, here and below
    IMPORT_FAILED = ("import_failed", "probe", "the source does not import")
    NO_CONSTRUCTOR_ARGUMENTS = ("no_constructor_arguments", "probe", "no arguments were found that construct it")
    NO_WORKLOAD = ("no_workload", "probe", "no inputs were found that it runs on")
    RANDOM = ("random", "probe", "two runs in eval mode differ")
    CONSTANT_OUTPUT = ("constant_output", "probe", "the output does not depend on the input")
    RETURNS_INPUT = ("returns_input", "probe", "the output is the input, or a view of it")
    CHANGES_INPUT = ("changes_input", "probe", "forward writes into its input")
    NO_TENSOR_OUTPUT = ("no_tensor_output", "probe", "it returns no floating-point tensor")
    NOT_FINITE = ("not_finite", "probe", "ordinary inputs give NaN or infinity")
    TOO_BIG = ("too_big", "probe", "its parameters, activations or operators are over the limit")

    # lower
    GRAPH_BREAK = ("graph_break", "lower", "forward depends on the values of tensors or cannot be traced")
    RANDOM_OP = ("random_op", "lower", "the graph draws random numbers")
    UNSUPPORTED_OP = ("unsupported_op", "lower", "Inductor has no lowering for an operator")
    STATEFUL = ("stateful", "lower", "forward changes the module's state")
    NOTHING_TO_LOWER = ("nothing_to_lower", "lower", "the graph has no kernel: views or copies only")
    NO_GRADIENT = ("no_gradient", "lower", "no gradient flows from an output to a parameter or an input")
    TOO_MANY_KERNELS = ("too_many_kernels", "lower", "the graph has more kernels than the limit")

    # tidy
    NOT_TIDIED = ("not_tidied", "tidy", "the generated code has a form that the tidier does not know")
    NOTHING_TO_TUNE = ("nothing_to_tune", "tidy", "an autotuned kernel was asked for, and none may run twice")
    CONSTRUCTOR_NEEDS_IMPORT = ("constructor_needs_import", "tidy", "the constructor needs more than torch")

    # verify
    DOES_NOT_LOAD = ("does_not_load", "verify", "the candidate does not import or construct")
    STATE_DIFFERS = ("state_differs", "verify", "the candidate's state_dict has other names, shapes or initial values")
    DOES_NOT_RUN = ("does_not_run", "verify", "the candidate raised or crashed when it ran")
    DOES_NOT_COMPILE = ("does_not_compile", "verify", "a kernel does not compile for a target")
    WRONG_CONTRACT = ("wrong_contract", "verify", "structure, shape, dtype or aliasing of the outputs differ")
    WRONG_VALUES = ("wrong_values", "verify", "an output is further from the oracle than allowed")
    NOT_DETERMINISTIC = ("not_deterministic", "verify", "two runs on the same inputs differ")
    OUTPUT_NOT_FROM_KERNEL = ("kernel_unused", "verify", "the outputs do not come from the kernels")
    FORBIDDEN_CODE = ("forbidden_code", "verify", "the source uses what could hide from the checks how it computes")
    UNVERIFIED_PATH = ("untried_path", "verify", "forward goes another way for large inputs, or after many calls")
    UNTRACEABLE = ("untraceable", "verify", "no trace tells what the candidate does, and only traces were asked for")
    IMPOSTOR_PASSES = ("impostor_passes", "verify", "a trivial answer passes, so the task proves nothing")
    ORACLE_FAILED = ("oracle_failed", "verify", "the reference does not run in float64 or is not finite")

    # distill: one unit is a model's answer; verify's reasons apply too
    NO_ANSWER = ("no_answer", "distill", "the endpoint refused the request, or its answer was empty or cut off")
    NO_CODE = ("no_code", "distill", "the answer holds no source with a kernel that it launches from ModelNew")
    UNSUPPORTED_EXPLANATION = (
        "not_borne_out",
        "distill",
        "the explanation names what the code does not have, or is none",
    )
    DUPLICATE_ANSWER = ("answered_before", "distill", "the same code as the lowered kernel, or as another answer")

    # any stage that runs a guest
    TIMED_OUT = ("timed_out", "guest", "the guest did not end before its deadline")
    OUT_OF_MEMORY = ("out_of_memory", "guest", "the guest asked for more memory than its cap")
    CRASHED = ("crashed", "guest", "the guest died by a signal, exited, or returned nothing")

    # screen
    TRIVIAL = ("trivial", "screen", "the kernel does too little to learn from")
    TOO_LONG = ("too_long", "screen", "the pair is longer than the limit")
    NOISE = ("noise", "screen", "too much of the text is not ASCII")
    PERSONAL = ("personal", "screen", "the text names a person who can be reached by it")
    SECRET = ("secret", "screen", "the text holds what looks like a credential")

    # balance
    OVER_CLUSTER = ("over_cluster", "balance", "the dataset has as many rows of its cluster as it may have")
    OVER_OPERATORS = (
        "over_operators",
        "balance",
        "the dataset has as many rows with the same operators as it may have",
    )
    OVER_REPOSITORY = ("over_repository", "balance", "the dataset has as many rows of its package as it may have")

    # deduplicate
    DUPLICATE_EXACT = ("duplicate_exact", "deduplicate", "the same code up to formatting and comments as a kept pair")
    DUPLICATE_RENAMED = ("duplicate_renamed", "deduplicate", "the same code up to names as a kept pair")
    DUPLICATE_BEHAVIOUR = ("duplicate_behaviour", "deduplicate", "the same outputs on shared inputs as a kept pair")
    DUPLICATE_NEAR = ("duplicate_near", "deduplicate", "nearly the same code as a kept pair")

    # decontaminate
    CONTAMINATED = ("contaminated", "decontaminate", "a problem of a benchmark, or much like one")
