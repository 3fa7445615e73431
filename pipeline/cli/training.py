"""The commands of the recipes: sft, grpo, train, evaluate, leaderboard, write, serve."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelquarry.pipeline.schema.errors import UserError

from .console import set_up_logging

if TYPE_CHECKING:
    from kernelquarry.pipeline.sandbox import SandboxSettings
    from kernelquarry.recipes.config import EvaluationSection, Recipe
    from kernelquarry.recipes.evaluate.results import Results
    from kernelquarry.recipes.train.trainer import Trained

ConfigOption = Annotated[str, typer.Option("--config", help="Recipe by name, or a TOML file.  [default: fits here]")]
DatasetOption = Annotated[str, typer.Option(help="Dataset folder, or id on the Hub; several with commas between.")]
OutOption = Annotated[Path | None, typer.Option("--out", help="Folder of the training.  [default: out/train/CONFIG]")]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="Change of the recipe: section.key=value.")]
ModelOption = Annotated[str, typer.Option("--model", help="Begin with this model in place of the recipe's.")]
MinutesOption = Annotated[float, typer.Option(help="Write a checkpoint and stop after so long; 0 is never.")]
WorkersOption = Annotated[int, typer.Option(min=1, help="Verifiers at once.")]
GpusOption = Annotated[str, typer.Option(help="GPUs that answers are executed on: all, none, or numbers such as 0,1.")]
EndpointOption = Annotated[str, typer.Option(help="Address of an OpenAI-compatible server, before /chat/completions.")]
ChatOption = Annotated[str, typer.Option(help="Chat template of recipes/chat in place of the model's own.")]
VerboseOption = Annotated[int, typer.Option("--verbose", "-v", count=True, help="-v: what is done; -vv: all.")]

DATASET = "out/tiny/dataset"
WORKERS = max(2, (os.cpu_count() or 1) - 2)  # what trains and writes needs some itself
MODEL = "out/train/smollm2-135m/grpo/model"


def sft(
    config: ConfigOption = "",
    dataset: DatasetOption = DATASET,
    out: OutOption = None,
    changes: SetOption = None,
    model: ModelOption = "",
    minutes: MinutesOption = 0.0,
    verbose: VerboseOption = 0,
) -> None:
    """Supervised training on a dataset's verified pairs; the same command goes on after a kill."""
    set_up_logging(verbose)
    from kernelquarry.recipes.train.sft import train as train_sft
    from kernelquarry.recipes.train.trainer import Ask

    name, recipe = _recipe(config, changes)
    _told("sft", train_sft(Ask(recipe, dataset, out or Path("out/train") / name, model, minutes)))


def grpo(
    config: ConfigOption = "",
    dataset: DatasetOption = DATASET,
    out: OutOption = None,
    changes: SetOption = None,
    model: ModelOption = "",
    minutes: MinutesOption = 0.0,
    workers: WorkersOption = WORKERS,
    gpus: GpusOption = "all",
    verbose: VerboseOption = 0,
) -> None:
    """GRPO with the verifier as the reward, from the model that `sft` left; the same command goes on after a kill."""
    set_up_logging(verbose)
    from kernelquarry.recipes.train.grpo import train as train_grpo
    from kernelquarry.recipes.train.run_directory import finished
    from kernelquarry.recipes.train.trainer import Ask

    name, recipe = _recipe(config, changes)
    folder = out or Path("out/train") / name
    start = model or (str(folder / "sft" / "model") if finished(folder / "sft") else "")
    _told("grpo", train_grpo(Ask(recipe, dataset, folder, start, minutes), _settings(workers, gpus)))


def train(
    config: ConfigOption = "",
    dataset: DatasetOption = DATASET,
    out: OutOption = None,
    changes: SetOption = None,
    workers: WorkersOption = WORKERS,
    gpus: GpusOption = "all",
    verbose: VerboseOption = 0,
) -> None:
    """Supervised training, GRPO, and an evaluation of each: what is done already is left alone."""
    set_up_logging(verbose)
    from kernelquarry.recipes.config import load_recipe
    from kernelquarry.recipes.evaluate.results import leaderboard

    name = config or default_recipe()
    folder, recipe = out or Path("out/train") / name, load_recipe(name, changes or ())
    sft(config, dataset, out, changes, "", 0.0, verbose)
    grpo(config, dataset, out, changes, "", 0.0, workers, gpus, verbose)
    models = {"base": recipe.model.name, **{stage: str(folder / stage / "model") for stage in ("sft", "grpo")}}
    found = []
    for stage, model in models.items():
        place, settings = folder / "evaluation" / stage, _settings(workers, gpus)
        chat = recipe.model.chat
        shown = (model, "test", dataset, (), recipe.evaluation, place, settings, stage)
        found += run_evaluation(*shown, chat=chat, held_out=recipe.held_out)
    (folder / "leaderboard.md").write_text(leaderboard(found))
    typer.echo(f"{folder / 'leaderboard.md'}\n\n{leaderboard(found)}")


def evaluate(
    model: Annotated[str, typer.Argument(help="Folder, id on the Hub, package:NAME, or the endpoint's name of it.")],
    suite: Annotated[str, typer.Option(help="test, embedded, kernelbench, tritonbench-g or tritonbench-t.")] = "test",
    source: Annotated[str, typer.Option(help="Dataset of the suite test; checkout of a benchmark.")] = "",
    level: Annotated[list[int] | None, typer.Option(help="Level of KernelBench; may be repeated.")] = None,
    endpoint: EndpointOption = "",
    chat: ChatOption = "",
    samples: Annotated[int, typer.Option(min=1, help="Answers to each problem.")] = 10,
    problems: Annotated[int, typer.Option(min=0, help="Of the suite, or of each level; 0 is all.")] = 0,
    temperature: Annotated[float, typer.Option(min=0.0)] = 1.0,
    top_p: Annotated[float, typer.Option(min=0.01, max=1.0)] = 0.97,
    new_tokens: Annotated[int, typer.Option(min=1, help="Longest answer.")] = 2048,
    batch: Annotated[int, typer.Option(min=1, help="Answers at once, of a local model.")] = 64,
    slots: Annotated[bool, typer.Option(help="Write with our own decoder: for small models on a GPU.")] = False,
    prompt_tokens: Annotated[int, typer.Option(min=0, help="Leave out longer prompts, and count them.")] = 0,
    time: Annotated[bool, typer.Option(help="Time first answers that are right, where there is a GPU.")] = True,
    held_out: Annotated[
        float, typer.Option(min=0.0, max=0.9, help="Share of the clusters, as the training's held_out.")
    ] = 0.0,
    out: Annotated[Path | None, typer.Option(help="Folder.  [default: out/evaluation/MODEL/SUITE]")] = None,
    workers: WorkersOption = WORKERS,
    gpus: GpusOption = "all",
    verbose: VerboseOption = 0,
) -> None:
    """A model on a suite, by our verifier and as others score; the same command goes on after a kill."""
    set_up_logging(verbose)
    from kernelquarry.recipes.config import EvaluationSection
    from kernelquarry.recipes.evaluate.results import render

    section = EvaluationSection(
        samples=samples,
        modules=problems,
        temperature=temperature,
        top_p=top_p,
        new_tokens=new_tokens,
        batch=batch,
        slots=slots,
        prompt_tokens=prompt_tokens,
        timed=time,
    )
    folder = out or Path("out/evaluation") / model.strip("/").replace("/", "--").replace(":", "--") / suite
    levels, settings = tuple(level or ()), _settings(workers, gpus)
    found = run_evaluation(model, suite, source, levels, section, folder, settings, model, endpoint, chat, held_out)
    typer.echo(render(found))


def write(
    module: Annotated[
        Path | None, typer.Argument(help="File with Model, get_inputs() and get_init_inputs(); without one, a REPL.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="Folder, id on the Hub, package:NAME, or its name at the endpoint.")
    ] = MODEL,
    endpoint: EndpointOption = "",
    n: Annotated[int, typer.Option("-n", min=1, help="Candidates, of which the best is written.")] = 1,
    verify: Annotated[bool, typer.Option(help="Verify each candidate.")] = True,
    time: Annotated[bool, typer.Option(help="Time those that are right, where there is a GPU.")] = False,
    temperature: Annotated[float, typer.Option(min=0.0)] = 1.0,
    top_p: Annotated[float, typer.Option(min=0.01, max=1.0)] = 0.97,
    new_tokens: Annotated[int, typer.Option(min=1, help="Longest answer.")] = 2048,
    out: Annotated[Path | None, typer.Option(help="File for the kernel; without one, it is printed.")] = None,
    workers: WorkersOption = WORKERS,
    gpus: GpusOption = "all",
) -> None:
    """A kernel for a module, by a model; a verified one is said to be so. Exit status 1 if none of them is right."""
    from kernelquarry.recipes.config import EvaluationSection
    from kernelquarry.recipes.generate.repl import Repl
    from kernelquarry.recipes.generate.writer import KernelWriter

    if module is not None and not module.is_file():
        raise UserError(f"{module}: no such file")
    section = EvaluationSection(temperature=temperature, top_p=top_p, new_tokens=new_tokens, batch=min(n, 64))
    with KernelWriter(model, endpoint, section, _settings(workers, gpus)) as writer:
        if module is None:
            Repl(writer, lambda text: typer.echo(text, nl=False)).run(sys.stdin)
            return
        best, *others = writer.generate_triton(module.read_text(), n, verify, time)
    for candidate in (best, *others):
        typer.echo(str(candidate), err=True)
    if out is not None and best.code:
        out.write_text(best.code)
    else:
        typer.echo(best.code or best.text)
    if best.judgement is not None and not best.judgement.passes:
        raise typer.Exit(1)


def serve(
    model: Annotated[str, typer.Argument(help="Folder, id on the Hub, or package:NAME.")] = MODEL,
    name: Annotated[str, typer.Option(help="What requests call it.  [default: MODEL]")] = "",
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes one that is free.")] = 8000,
    chat: ChatOption = "",
    slots: Annotated[int | None, typer.Option(min=1, help="Answers at once.  [default: 128 on a GPU, else 8]")] = None,
    context: Annotated[int, typer.Option(min=16, help="Most tokens of a prompt and its answer.")] = 8192,
    verbose: VerboseOption = 0,
) -> None:
    """Put a small model behind OpenAI's chat completions, to be asked as teachers are (docs/distillation.md)."""
    set_up_logging(verbose)
    check_installed("transformers")
    import asyncio

    import torch

    from kernelquarry.recipes.generate.serve import SlotWriter
    from kernelquarry.recipes.generate.serve import serve as listen

    slots = slots or (128 if torch.cuda.is_available() else 8)
    asyncio.run(listen(SlotWriter(model, name, chat, slots, context), host, port))


def leaderboard(
    folder: Annotated[Path, typer.Argument(help="Folder that holds evaluations.")] = Path("out"),
    out: Annotated[Path, typer.Option(help="Page.")] = Path("out/leaderboard.md"),
) -> None:
    """One page of all evaluations below a folder."""
    from kernelquarry.recipes.evaluate.results import leaderboard as page
    from kernelquarry.recipes.evaluate.results import read_results

    found = read_results(folder)
    if not found:
        raise UserError(f"{folder} holds no results: make some with `kernelquarry evaluate MODEL`")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(found))
    typer.echo(out)


def run_evaluation(
    model: str,
    suite: str,
    source: str,
    levels: tuple[int, ...],
    section: EvaluationSection,
    folder: Path,
    settings: SandboxSettings,
    name: str,
    endpoint: str = "",
    chat: str = "",
    held_out: float = 0.0,
) -> list[Results]:
    """Evaluate, and leave the results in `folder`. Raises: UserError."""
    from kernelquarry.pipeline.sandbox import Sandbox
    from kernelquarry.recipes.evaluate.evaluate import evaluate as run
    from kernelquarry.recipes.evaluate.kernelbench import LEVELS
    from kernelquarry.recipes.evaluate.problems import read_suite, short
    from kernelquarry.recipes.evaluate.results import summarise, write_results
    from kernelquarry.recipes.generate.samplers import open_sampler

    with Sandbox(settings) as sandbox:
        source = source or (DATASET if suite == "test" else "")
        limit = 0 if section.prompt_tokens else section.modules
        problems = read_suite(suite, source, levels or LEVELS, limit, sandbox, held_out)
        device = sandbox.gpus.description.name if sandbox.gpus else "CPU, interpreted"
    sampler = open_sampler(model, section, endpoint, chat)
    if section.prompt_tokens:
        problems = short(problems, sampler.tokens, section.prompt_tokens, section.modules)
    found = run(problems, sampler, section.samples, folder, settings, section.timed and bool(settings.gpus))
    sampling = f"temperature {section.temperature:g}, top_p {section.top_p:g}"
    results = []
    for level in sorted({problem.level for problem in problems}):
        ids = {problem.id for problem in problems if problem.level == level}
        results.append(summarise(name, suite, level, sampling, device, found, ids))
    write_results(folder, results)
    return results


def add_commands(app: typer.Typer) -> None:
    for command in (sft, grpo, train, evaluate, leaderboard, write, serve):
        app.command()(command)


def default_recipe() -> str:
    import torch

    return "smollm2-135m" if torch.cuda.is_available() else "smollm2-135m-cpu"


def _recipe(config: str, changes: list[str] | None) -> tuple[str, Recipe]:
    """The recipe, and the name of its folder."""
    check_installed()
    from kernelquarry.recipes.config import load_recipe

    name = config or default_recipe()
    return Path(name).stem if name.endswith(".toml") else name, load_recipe(name, changes or ())


def check_installed(*needed: str) -> None:
    """Raises: UserError: what training needs beside, or some of it, is not there."""
    from importlib.util import find_spec

    needed = needed or ("transformers", "trl", "peft", "accelerate")
    if missing := [name for name in needed if find_spec(name) is None]:
        raise UserError(f"{', '.join(missing)} missing: `make train` installs them, or pip install kernelquarry[train]")


def _settings(workers: int, gpus: str) -> SandboxSettings:
    from kernelquarry.pipeline.sandbox.settings import SandboxSettings, choose_gpus

    return SandboxSettings(workers=workers, gpus=choose_gpus(gpus))


def _told(name: str, trained: Trained) -> None:
    if trained.done:
        typer.echo(f"{name}: {trained.model}")
    else:
        typer.echo(f"{name}: stopped at step {trained.steps}; the same command goes on from there")
