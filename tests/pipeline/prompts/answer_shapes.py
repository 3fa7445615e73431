"""Two hundred shapes of answers: what is around the code, times what was thought before it, and answers without any.

Each shape is a text and the code that is in it, "" if there is none that is whole.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

IMPORTS = "import torch\nimport triton\nimport triton.language as tl\n"
KERNEL = '''

@triton.jit
def double(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    """Each program doubles one block."""
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (index >= 0) & (index < size)
    tl.store(out_ptr + index, 2.0 * tl.load(x_ptr + index, mask=inside), mask=inside)
'''
MODEL = """

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
"""
CODE = IMPORTS + KERNEL + MODEL
OTHER = CODE.replace("128", "256")
FENCED_INSIDE = CODE.replace(
    '"""Each program doubles one block."""', '"""Use it so:\n\n```python\ndouble[grid](x, out)\n```\n"""'
)
USE = 'model = ModelNew()\nprint(model(torch.rand(4, device="cuda")))\n'
PROSE = "The kernel loads a block, doubles it and stores it. Its mask keeps `index < size`.\n"


@dataclass(frozen=True)
class Shape:
    name: str
    text: str
    code: str


def block(code: str, info: str = "python", mark: str = "```") -> str:
    return f"{mark}{info}\n{code}{mark}\n"


def indented(text: str, by: str) -> str:
    return "".join(by + line for line in text.splitlines(keepends=True))


def cut(text: str, share: float) -> str:
    return text[: int(len(text) * share)]


BODIES: dict[str, tuple[str, str]] = {
    "fenced": (block(CODE), CODE),
    "fenced, prose before": (PROSE + "\n" + block(CODE), CODE),
    "fenced, prose after": (block(CODE) + "\n" + PROSE, CODE),
    "prose around": (PROSE + block(CODE) + PROSE, CODE),
    "no language": (block(CODE, ""), CODE),
    "upper-case language": (block(CODE, "Python"), CODE),
    "py": (block(CODE, "py"), CODE),
    "triton": (block(CODE, "triton"), CODE),
    "language and title": (block(CODE, 'python title="model_new.py"'), CODE),
    "space before the language": (block(CODE, " python"), CODE),
    "tildes": (block(CODE, "python", "~~~"), CODE),
    "four backticks": (block(CODE, "python", "````"), CODE),
    "four backticks around fences": (block(FENCED_INSIDE, "python", "````"), FENCED_INSIDE),
    "fences inside of a docstring": (block(FENCED_INSIDE), FENCED_INSIDE),
    "no fence": (CODE, CODE),
    "no fence, prose before": ("Here it is:\n\n" + CODE, CODE),
    "no fence, prose after": (CODE + "\n" + PROSE, CODE),
    "no fence, prose around": ("Sure!\n\n" + CODE + "\n\nThis doubles it, as was asked.\n", CODE),
    "no new line before the end": ("```python\n" + CODE.rstrip() + "```", CODE),
    "code on the line of the fence": ("```" + CODE + "```", CODE),
    "in a list": ("1. The file:\n\n" + indented(block(CODE), "   ") + "\n2. Done.\n", CODE),
    "in a quote": (indented(block(CODE), "> "), CODE),
    "with tabs before the fence": (indented(block(CODE), "\t"), CODE),
    "Windows lines": (block(CODE).replace("\n", "\r\n"), CODE),
    "old Mac lines": (block(CODE).replace("\n", "\r"), CODE),
    "byte-order mark": ("\ufeff" + block(CODE), CODE),
    "zero-width spaces": (block(CODE.replace("\n\n", "\n\u200b\n")), CODE),
    "a draft, then the file": (block(OTHER) + "Better with smaller blocks:\n" + block(CODE), CODE),
    "the file, then its use": (block(CODE) + "Use it so:\n" + block(USE), CODE),
    "the file, then a shell": (block(CODE) + block("pip install triton\n", "bash"), CODE),
    "a shell, then the file": (block("pip install triton\n", "bash") + block(CODE), CODE),
    "in two blocks": (block(IMPORTS + KERNEL) + "and\n" + block(MODEL.lstrip()), CODE),
    "in three blocks": (block(IMPORTS) + "then\n" + block(KERNEL.strip() + "\n") + block(MODEL.lstrip()), CODE),
    "the module again, then the file": (block("class Model:\n    pass\n") + block(CODE), CODE),
    "a fragment, then the file": (block("out = torch.empty_like(x)\n") + block(CODE), CODE),
    "the file, then an explanation in a block": (block(CODE) + block("block = 128 threads\n", "text"), CODE),
    "json": (json.dumps({"thought": "simple", "code": CODE}), CODE),
    "json in a fence": (block(json.dumps({"code": CODE}, indent=1) + "\n", "json"), CODE),
    "json with a fenced string": (json.dumps({"answer": block(CODE)}), CODE),
    "json, nested": (json.dumps({"files": [{"path": "model_new.py", "content": CODE}]}), CODE),
    "escaped lines": (CODE.replace("\n", "\\n"), CODE),
    "escaped lines in a fence": ("```python\\n" + CODE.replace("\n", "\\n") + "```", CODE),
    "html": (block(html.escape(CODE)), CODE),
    "answer tags": (f"<answer>\n{CODE}</answer>", CODE),
    "code tags": (f"<code>\n{CODE}</code>\n{PROSE}", CODE),
    "answer tags around a fence": (f"<answer>\n{block(CODE)}</answer>", CODE),
    "file tags": (f'<file path="model_new.py">\n{CODE}</file>', CODE),
    "Llama's tags": (f"[PYTHON]\n{CODE}[/PYTHON]", CODE),
    "numbered lines": (block("".join(f"{n:3} | {line}\n" for n, line in enumerate(CODE.splitlines(), 1))), CODE),
    "prompts": (block("".join(f">>> {line}\n" for line in CODE.splitlines())), CODE),
    "end of turn": (block(CODE) + "<|im_end|>", CODE),
    "end of text": (block(CODE).rstrip() + "<|endoftext|>", CODE),
    "end of sentence": (block(CODE) + "</s>", CODE),
    "not closed, but whole": ("```python\n" + CODE, CODE),
    "closed by the next fence's language": ("```python\n" + CODE + "```python\n" + USE + "```", CODE),
    "a heading before": ("# Answer\n\n## model_new.py\n\n" + block(CODE), CODE),
    "bold before": ("**model_new.py**\n" + block(CODE) + "\n---\n", CODE),
    "wrong syntax": (block(CODE.replace("return out", "return out)")), CODE.replace("return out", "return out)")),
    "in a language that it is not": (block(CODE, "cuda"), CODE),
}

NOTHING: dict[str, str] = {
    "empty": "",
    "blank": " \n\n\t\n",
    "refusal": "I'm sorry, but I can't help with that.",
    "prose": PROSE,
    "prose with a name": "The class ModelNew would launch the kernel `double`.",
    "shell only": block("pip install triton\n", "bash"),
    "empty fence": "```python\n```",
    "two empty fences": "```python\n```\n```python\n```",
    "cut off in the kernel": cut("```python\n" + CODE, 0.5),
    "cut off in the model": cut("```python\n" + CODE, 0.78),
    "cut off in the imports": cut("```python\n" + CODE, 0.06),
    "cut off without a fence": cut(CODE, 0.5),
    "cut off in a thought": "<think>\nFirst, the block size. " + PROSE * 3,
    "cut off in a thought with code": "<think>\nA draft:\n" + block(CODE) + "but no, since",
    "only a thought": "<think>\n" + block(CODE) + "</think>\n",
    "a fence alone": "```",
    "many fences": "```\n" * 100,
    "json without code": json.dumps({"error": "overloaded"}),
    "json cut off": cut(json.dumps({"code": CODE}), 0.7),
    "html page": "<html><body><h1>502 Bad Gateway</h1></body></html>",
    "c": block("int main() { return 0; }\n", "c"),
    "the prompt again": "Write this module with Triton kernels.",
    "unfinished json": "{",
    "only tags": "<answer></answer>",
}

THOUGHTS: dict[str, Callable[[str], str]] = {
    "": lambda body: body,
    "think": lambda body: f"<think>\nOne kernel is enough.\n</think>\n\n{body}",
    "think with code": lambda body: f"<think>\nA draft:\n{block(OTHER)}\nSmaller blocks.\n</think>\n{body}",
    "think, opened by the template": lambda body: f"Let me see.\n{block(OTHER)}No.\n</think>\n\n{body}",
}


def shapes() -> Iterator[Shape]:
    """Every body after thoughts of three kinds or none, as far as two hundred go, and what holds nothing."""
    for thought, think in THOUGHTS.items():
        for name, (body, code) in BODIES.items():
            if thought != "think with code" or "no fence" not in name:
                yield Shape(f"{thought}: {name}" if thought else name, think(body), code)
    for name, text in NOTHING.items():
        yield Shape(f"nothing: {name}", text, "")
