"""Run rows as KernelBench's evaluator would, with only torch and triton installed (and numpy, for the
interpreter). Read rows as JSON lines on standard input, `{"id", "python_code", "triton_code"}`; write
`{"id", "ok", "error"}` lines. Nothing of kernelquarry is imported: this file is all that a reader needs.

    TRITON_INTERPRET=1 python fresh_rows.py < rows.jsonl

Each row runs in a process of its own. Both sides are constructed under one seed and get the same inputs, and
must agree within 1e-4, KernelBench's tolerance for float32. On a machine with a GPU, leave TRITON_INTERPRET
unset: the row then runs there.
"""

import json
import multiprocessing
import os
import sys
import tempfile

import torch
import triton  # noqa: F401 - imported once, before the rows fork

INTERPRET = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRET else "cuda"
DEADLINE_S = 120


def load(code: str, name: str, folder: str) -> dict:
    path = os.path.join(folder, f"{name}.py")
    with open(path, "w") as stream:
        stream.write(code)  # triton.jit reads the source of a kernel from its file
    namespace = {"__name__": name, "__file__": path}
    exec(compile(code, path, "exec"), namespace)
    return namespace


def tensors(value):
    """Tensors of a result, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for key in value for t in tensors(value[key])]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in tensors(item)]
    return []


def to_device(value):
    return value.to(DEVICE) if isinstance(value, torch.Tensor) else value


def run(row: dict) -> str:
    """The row's error; "" if module and kernel agree."""
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        reference, candidate = load(row["python_code"], "ref", folder), load(row["triton_code"], "new", folder)
        torch.manual_seed(42)
        init = reference["get_init_inputs"]()
        torch.manual_seed(42)
        model = reference["Model"](*init).eval().to(DEVICE)
        torch.manual_seed(42)
        model_new = candidate["ModelNew"](*init).eval().to(DEVICE)
        torch.manual_seed(7)
        inputs = [to_device(value) for value in reference["get_inputs"]()]
        expected, got = tensors(model(*inputs)), tensors(model_new(*inputs))
    if len(expected) != len(got):
        return f"{len(got)} outputs instead of {len(expected)}"
    for index, (a, b) in enumerate(zip(expected, got, strict=True)):
        if a.shape != b.shape:
            return f"output {index} has shape {tuple(b.shape)} instead of {tuple(a.shape)}"
        if not torch.allclose(a, b, atol=1e-4, rtol=1e-4):
            return f"output {index} differs by {(a.double() - b.double()).abs().max().item():.3g}"
    return ""


def child(row: dict, connection) -> None:
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False  # on by default, and alone worth an error of 1e-3
    try:
        connection.send(run(row))
    except BaseException as error:  # noqa: BLE001 - whatever a row does is that row's result
        connection.send(f"{type(error).__name__}: {error}"[:500])


def main() -> None:
    context = multiprocessing.get_context("fork")  # this process never touches a GPU, so that its children can
    for line in sys.stdin:
        row = json.loads(line)
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=child, args=(row, sender))
        process.start()
        sender.close()
        try:
            error = receiver.recv() if receiver.poll(DEADLINE_S) else "no answer before the deadline"
        except EOFError:
            error = "the process died"
        process.kill()
        process.join()
        print(json.dumps({"id": row["id"], "ok": error == "", "error": error}), flush=True)


if __name__ == "__main__":
    main()
