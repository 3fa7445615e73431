"""The stages' names and what each does, in order. `pipeline/graph.py` says how."""

DOES: dict[str, str] = {
    "read": "read every Python file of the corpus, with its licence",
    "mine": "find nn.Module classes and all that they need; no code is run",
    "probe": "find constructor arguments and inputs that a module runs on",
    "deduplicate": "drop modules that copy another one",
    "decontaminate": "drop modules that overlap a benchmark's problems",
    "lower": "compile to Inductor's Triton source; no GPU is needed",
    "tidy": "rewrite that source as one readable, self-contained file",
    "verify": "run the module and the kernel apart, and compare them",
    "distill": "ask models for further kernels, if a table of teachers is given",
    "screen": "drop what is not worth a row",
    "balance": "drop what there is too much of: rows of one cluster, with the same operators, of one package",
    "split": "assign clusters to train, validation and test",
    "time": "time kernels beside eager and torch.compile, where there is a GPU",
}
OPTIONAL: dict[str, str] = {
    "backward": "make the rows with gradients, of the modules that deduplicate kept",
    "float16": "make the rows with kernels in float16, of the modules that deduplicate kept",
    "bfloat16": "make the rows with kernels in bfloat16, of the modules that deduplicate kept",
    "autotuned": "make the rows with autotuned kernels, of the modules that were lowered",
}
