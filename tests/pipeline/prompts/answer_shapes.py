"""Hundreds of shapes of answers: each text around the code, after each form of thinking, and answers without code.

A shape has a text and the code in the text, "" if the text has no complete code.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

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
FIRST, SECOND = IMPORTS + KERNEL, MODEL.strip() + "\n"
RENAMED = CODE.replace("ModelNew", "Doubler")
SINGLE = CODE.replace('"""', "'''")
MODULE = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return 2 * x\n"
SKETCH = (
    IMPORTS
    + "\n@triton.jit\ndef double(x_ptr): ...\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): ...\n"
)
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


def numbered(form: str) -> str:
    return "".join(form.format(number) + line + "\n" for number, line in enumerate(CODE.splitlines(), 1))


def marked(code: str, mark: str) -> str:
    """Prefix each line of `code` with `mark`, as a patch does."""
    return "".join(f"{mark}{line}\n" for line in code.splitlines())


def call(arguments: object) -> str:
    return json.dumps({"name": "write_file", "arguments": arguments})


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

PATCH = "--- a/model.py\n+++ b/model_new.py\n@@ -1,7 +1,20 @@\n"
CHANGED = PATCH + "".join(
    f"-{line.replace('128', '256')}\n+{line}\n" if "128" in line else f" {line}\n" for line in CODE.splitlines()
)

WRAPPED: dict[str, tuple[str, str]] = {
    "a patch that adds": (block(PATCH + marked(CODE, "+"), "diff"), CODE),
    "a patch without a header": (block(marked(CODE, "+"), "diff"), CODE),
    "a patch in place of the module": (block(PATCH + marked(MODULE, "-") + marked(CODE, "+"), "diff"), CODE),
    "a patch of another version": (block(CHANGED, "diff"), CODE),
    "a patch without a fence": ("Apply it:\n\n" + CHANGED + "\nThat is all.\n", CODE),
    "a patch for a tool": (f"*** Begin Patch\n*** Add File: m.py\n{marked(CODE, '+')}*** End Patch\n", CODE),
    "a patch in json": (json.dumps({"patch": PATCH + marked(CODE, "+")}), CODE),
    "the file, then a patch": (block(CODE) + block("@@ -1 +1 @@\n-BLOCK=128\n+BLOCK=256\n+x\n", "diff"), CODE),
    "search and replace": (f"m.py\n<<<<<<< SEARCH\n{MODULE}=======\n{CODE}>>>>>>> REPLACE\n", CODE),
    "search and replace in a fence": (block(f"<<<<<<< SEARCH\n=======\n{CODE}>>>>>>> REPLACE\n"), CODE),
    "tool call": (call({"path": "m.py", "content": CODE}), CODE),
    "tool call with a string": (call(json.dumps({"path": "m.py", "content": CODE})), CODE),
    "tool call in tags": (f"I write it.\n<tool_call>\n{call({'content': CODE})}\n</tool_call>\n", CODE),
    "tool call in tags with a string": (f"<tool_call>\n{call(json.dumps({'content': CODE}))}\n</tool_call>", CODE),
    "tool call behind a mark": (f"[TOOL_CALLS][{call({'content': CODE})}]", CODE),
    "function tags": (f"<function=write>\n<parameter=content>\n{CODE}</parameter>\n</function>", CODE),
    "invoke tags": (f'<invoke name="write">\n<parameter name="content">{CODE}</parameter>\n</invoke>', CODE),
    "json in two": (json.dumps({"thought": "hm"}) + "\n" + json.dumps({"code": CODE}), CODE),
    "json, then prose": ("So: " + json.dumps({"code": CODE}) + "\nUse {x} as you wish.", CODE),
    "json, lines": (json.dumps({"lines": CODE.splitlines()}), CODE),
    "json, two versions": (json.dumps({"draft": OTHER, "final": CODE}), CODE),
    "json, two files": (json.dumps({"kernel.py": FIRST, "model.py": SECOND}), FIRST + SECOND),
    "json, broken": ('{"code": ' + json.dumps(CODE) + ",}", CODE),
    "json, cut off behind the code": (json.dumps({"code": CODE, "note": "x" * 50})[:-30], CODE),
    "json with three quotes": (f'{{"code": """{CODE}"""}}', CODE),
    "json in tags": (f"<answer>{json.dumps({'code': CODE})}</answer>", CODE),
    "json, escaped twice": (json.dumps({"code": CODE.replace("\n", "\\n")}), CODE),
    "a dictionary of Python": (str({"code": CODE}), CODE),
    "a string of Python": (block(f"code = '''\n{CODE}'''\nprint(code)\n"), CODE),
    "a string of TOML": (f'code = """\n{SINGLE}"""\n', SINGLE),
    "yaml": (block("code: |\n" + indented(CODE, "  ") + "lang: python\n", "yaml"), CODE),
    "tags on the line of the code": (f"<answer>{CODE.strip()}</answer>", CODE),
    "tags of the class": (f"<ModelNew>\n{CODE}</ModelNew>", CODE),
    "tags of the class on the line": (f"<ModelNew>{CODE}</ModelNew>", CODE),
    "tags around kernel and model": (f"<kernel>\n{FIRST}</kernel>\n<model>\n{SECOND}</model>", FIRST + SECOND),
    "character data": (f"<answer><![CDATA[{CODE}]]></answer>", CODE),
    "html page with code": (f'<pre><code class="python">{html.escape(CODE)}</code></pre>', CODE),
    "html with breaks": (f"<pre>{html.escape(CODE).replace(chr(10), '<br>')}</pre>", CODE),
    "only & escaped": (block(CODE.replace("&", "&amp;")), CODE),
    "draft in a thought's tags": (f"<scratchpad>\n{block(OTHER)}</scratchpad>\n{block(FIRST)}{block(SECOND)}", CODE),
    "a thought on the line of the fence": (f"<think> simple </think> {block(CODE)}", CODE),
    "a thought with an open fence": (f"<think>\n```python\ndef f(:\n</think>\n{block(CODE)}", CODE),
    "channels": (f"<|channel|>analysis<|message|>{block(OTHER)}<|end|><|channel|>final<|message|>{block(CODE)}", CODE),
    "made-up next turn": (f"{block(CODE)}<|im_end|>\n<|im_start|>user\nMore.\n<|im_end|>\n{block(OTHER)}", CODE),
    "indented, no fence": ("Here:\n\n" + indented(CODE, "    ") + "\nDone.\n", CODE),
    "indented by tabs, no fence": ("Here:\n\n" + indented(CODE, "\t"), CODE),
    "indented below a directive": (".. code-block:: python\n\n" + indented(CODE, "    "), CODE),
    "no fence, long prose after": (CODE + "\n" + (PROSE + "\n") * 99, CODE),
    "no fence, words after": (CODE + "\nNote: fast\nDone\n", CODE),
    "no fence, a list after": (CODE + "\n  * fast\n  * right\n", CODE),
    "no fence, prose like code before": ("import the following, from here:\n\n" + CODE, CODE),
    "no fence, two versions": (f"Version 1\n{OTHER}\nVersion 2\n{CODE}", CODE),
    "no fence, prose between": (f"{FIRST}\nNow the module:\n\n{SECOND}", CODE),
    "only the last fence": ("Sure, here:\n" + CODE + "```\n\nIt doubles.\n", CODE),
    "fences of three quotes": (f"'''python\n{CODE}'''\n", CODE),
    "fences of one backtick": (f"`{CODE}`", CODE),
    "a fence in a fence": (f"```markdown\n# Answer\n{block(CODE)}```\n", CODE),
    "two fences to open": (f"```\n{block(CODE)}```\n", CODE),
    "button of a web page": (f"python\nCopy code\n{CODE}", CODE),
    "cell of a notebook": (block("%%writefile m.py\n" + CODE), CODE),
    "cell with a shell's line": (block("!pip install triton\n" + CODE), CODE),
    "document of a shell": (block(f"cat > m.py << 'EOF'\n{CODE}EOF\npython m.py\n", "bash"), CODE),
    "latex": (f"\\begin{{lstlisting}}[language=Python]\n{CODE}\\end{{lstlisting}}", CODE),
    "begin and end": (f"BEGIN CODE\n{CODE}END CODE\n", CODE),
    "spaces that do not break": (block(CODE.replace("    ", "\u00a0" * 4)), CODE),
    "typographic quotes": (block(CODE.replace('"""', "”””")), CODE),
    "escapes of Markdown": (block(CODE).replace("_", "\\_"), CODE),
    "lines numbered by tabs": (block(numbered("{}\t")), CODE),
    "lines numbered by spaces": (block(numbered("{:4d}  ")), CODE),
    "lines numbered by arrows": (block(numbered("{:6d}→")), CODE),
    "lines numbered by L": (block(numbered("L{}: ")), CODE),
    "numbered list of two blocks": (
        f"1. **Kernel**\n\n{indented(block(FIRST), '   ')}\n2. **Module**\n\n{indented(block(SECOND), '   ')}",
        CODE,
    ),
    "kernel, shell, model": (block(FIRST) + block("pip install triton\n", "bash") + block(SECOND), CODE),
    "draft, then two blocks": (block(OTHER) + "In two files:\n" + block(FIRST) + block(SECOND), CODE),
    "two blocks, then whole": (block(FIRST) + block(SECOND) + "Together:\n" + block(OTHER), OTHER),
    "the file, then its parts": (block(CODE) + block(KERNEL.strip() + "\n") + block(SECOND), CODE),
    "the file, then a sketch": (block(CODE) + "In short:\n" + block(SKETCH), CODE),
    "the file, then another launch": (block(CODE) + block("        double[(9,)](x, out, 9, BLOCK=512)\n"), CODE),
    "the file, then the module": (block(CODE) + "Instead of:\n" + block(MODULE), CODE),
    "the file, then a test": (block(CODE) + block("import torch\nfrom m import ModelNew\n\n" + USE), CODE),
    "the file, then one that is cut off": (block(CODE) + "Better:\n```python\n" + OTHER[:-40], CODE),
    "another name of the class": (block(RENAMED) + block("model = Doubler()\n"), RENAMED),
    "another name, then its own": (block(RENAMED + "\nModelNew = Doubler\n"), RENAMED + "\nModelNew = Doubler\n"),
}

NOTHING: dict[str, str] = {
    "cut off in forward": "```python\n" + CODE[:-30],
    "cut off in forward without a fence": CODE[:-30],
    "cut off in forward in json": json.dumps({"code": CODE})[:-60],
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


LINES = CODE.splitlines()
SPACED = html.escape(CODE).replace("    ", "&nbsp;" * 4)
PARTS: dict[str, str] = {  # of `answer_styles.txt`
    "code": CODE,
    "stripped": CODE.rstrip(),
    "other": OTHER,
    "block": block(CODE),
    "draft": block(OTHER),
    "module": MODULE,
    "block of the module": block(MODULE),
    "imports": IMPORTS,
    "kernel": KERNEL,
    "model": MODEL,
    "use": USE,
    "json": json.dumps(CODE),
    "json of json": json.dumps(json.dumps(CODE))[1:-1],
    "json of the draft": json.dumps(OTHER),
    "raw json": CODE.replace('"', '\\"'),
    "string": repr(CODE),
    "html": html.escape(CODE),
    "html with spaces": SPACED,
    "spans": "".join(f'<span class="k"><b>{html.escape(line)}</b></span>\n' for line in LINES),
    "paragraphs": "".join(f"<p>{line}</p>\n" for line in SPACED.splitlines()),
    "indented": indented(CODE, "    "),
    "boxed": "".join(f"│ {line:90} │\n" for line in LINES),
    "barred": indented(CODE, "| "),
    "continued": CODE.replace("\n", "\n   ...: "),
    "added": marked(CODE, "+"),
    "added with a space": marked(CODE, "+ "),
    "removed": marked(MODULE, "-"),
    "changed": "".join(f"-{line}0\n+{line}\n" if "128" in line else f"{line}\n" for line in LINES),
}
OPENINGS = (
    "{python}|{.python .numberLines}|python {linenos=table}|py:m.py|python3.11|Python 3|language-python|ipython|"
    "python copy|openai-triton|python filename=m.py|12:40:m.py|python,ignore|m.py|python // m.py|"
    "{code-cell} ipython3|PYTHON3|python\t"
).split("|")
NUMBERS = ("{:02d}. ", "{:3d}: ", "[{}] ", "{}) ", "{:>4} ", "#{}: ", "{:>3}│ ")
SPELT: dict[str, tuple[str, str]] = {  # what is typed in place of what
    "wide brackets and commas": ("(),", "（），"),  # noqa: RUF001
    "wide colons": (":", "："),  # noqa: RUF001
    "dashes": ("-", "–"),  # noqa: RUF001
    "signs of minus": ("-", "−"),  # noqa: RUF001
    "line separators": ("\n", "\u2028"),
    "next lines": ("\n", "\x85"),
}
NEGATIVE = CODE.replace("index >= 0", "index > -1")
TYPED: dict[str, tuple[str, str]] = {  # odd characters, and the code that they stand for
    "soft hyphens": (block(CODE.replace("double[", "dou\u00adble[")), CODE),
    "marks of direction": (block(CODE.replace("index =", "index\u200e =")), CODE),
    "one sign for two": (block(CODE.replace(">=", "≥")), CODE),
    "single quotes": (block(CODE.replace('"""', "\u2018" * 3)), CODE),
    "form feeds": (block(CODE.replace("\n\n", "\n\x0c\n")), CODE),
    "tabs": (block(CODE.replace("    ", "\t")), CODE),
    "lines twice as far": (block(CODE.replace("\n", "\n\n")), CODE),
    "lines ended three times": (block(CODE.replace("\n", "\r\r\n")), CODE),
    "spaces behind lines": (block(CODE.replace("\n", "   \n")), CODE),
    "escapes of json": (json.dumps({"code": CODE}).replace("<", "\\u003c").replace("'", "\\u0027"), CODE),
    "Windows lines in json": (json.dumps({"code": CODE.replace("\n", "\r\n")}), CODE),
}


def styles() -> Iterator[Shape]:
    """The styles in `answer_styles.txt`, and answers with odd fences, line numbers or characters; all contain code."""
    text = (Path(__file__).parent / "answer_styles.txt").read_text()
    for name, body in re.findall(r"^=== (.*)\n([\s\S]*?)(?=^=== |\Z)", text, re.MULTILINE):
        yield Shape(f"style: {name}", re.sub("«(.*?)»", lambda part: PARTS[part[1]], body), CODE)
    yield from (Shape(f"opened by {info}", block(CODE, info), CODE) for info in OPENINGS)
    yield from (Shape(f"numbered by {form}", block(numbered(form)), CODE) for form in NUMBERS)
    yield from (Shape(f"typed: {name}", text, code) for name, (text, code) in TYPED.items())
    for name, (right, typed) in SPELT.items():
        yield Shape(f"typed: {name}", block(NEGATIVE.translate(str.maketrans(right, typed))), NEGATIVE)


def shapes() -> Iterator[Shape]:
    """Every body after each form of thinking, all texts without code, and all styles."""
    for thought, think in THOUGHTS.items():
        for name, (body, code) in (BODIES | WRAPPED).items():
            if thought != "think with code" or "no fence" not in name:
                yield Shape(f"{thought}: {name}" if thought else name, think(body), code)
    for name, text in NOTHING.items():
        yield Shape(f"nothing: {name}", text, "")
    yield from styles()
