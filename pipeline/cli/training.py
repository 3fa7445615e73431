"""Commands of the recipes: sft, grpo, train, evaluate, leaderboard, write, serve."""

from __future__ import annotations

import math
import os
import sys
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.jsonl_append import read_lines

from .console import set_up_logging
from .open_run import sandbox_settings
from .options import GpusOption, VerboseOption, WorkersOption

if TYPE_CHECKING:
    from kernelquarry.recipes.config import Recipe
    from kernelquarry.recipes.train.trainer import TrainResult

ConfigOption = Annotated[str, typer.Option("--config", help="Name of a recipe, or a TOML file.", show_default="by GPU")]
DatasetOption = Annotated[str, typer.Option(help="Dataset folders or ids on the Hub, separated by commas.")]
OutOption = Annotated[Path | None, typer.Option("--out", help="Output folder.", show_default="out/train/CONFIG")]
SetOption = Annotated[list[str] | None, typer.Option("--set", help="Override of the recipe: section.key=value.")]
ModelOption = Annotated[str, typer.Option("--model", help="Initial model in place of the recipe's.")]
MinutesOption = Annotated[float, typer.Option(help="Time limit, after which a checkpoint is written; 0: none.")]
EndpointOption = Annotated[str, typer.Option(help="Address of an OpenAI-compatible server, up to and including /v1.")]
ChatOption = Annotated[str, typer.Option(help="File of recipes/generate/chat that replaces the model's chat template.")]
TemperatureOption = Annotated[float, typer.Option(min=0.0, help="Sampling temperature; 0: greedy decoding.")]
TopPOption = Annotated[float, typer.Option(min=0.01, max=1.0, help="Probability mass of nucleus sampling.")]
NewTokensOption = Annotated[int, typer.Option(min=1, help="Most tokens of an answer.")]

DATASET = "out/tiny/dataset"
WORKERS = max(2, (os.cpu_count() or 1) - 2)  # training and generation need some cores
MODEL = "out/train/smollm2-135m/grpo/model"
_LITTLE = (
    "This model saw {steps} steps. A GPU trains on all rows several times in minutes: see docs/guides/training.md "
    "for the recipes qwen-coder-0.5b and qwen-coder-1.5b."
)
PROTOCOLS = {"kernelbench": {"temperature": 1.0, "top_p": 0.97}}  # by suite: KernelLLM's


def sft(
    config: ConfigOption = "",
    dataset: DatasetOption = DATASET,
    out: OutOption = None,
    changes: SetOption = None,
    model: ModelOption = "",
    minutes: MinutesOption = 0.0,
    verbose: VerboseOption = 0,
) -> bool:
    """Train a model on a dataset's verified pairs. After a kill, the same command resumes."""
    set_up_logging(verbose)
    from kernelquarry.recipes.train.sft import train as train_sft
    from kernelquarry.recipes.train.trainer import TrainingJob

    name, recipe = _recipe(config, changes)
    return _print_result(
        "sft", train_sft(TrainingJob(recipe, dataset, out or Path("out/train") / name, model, minutes))
    )


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
) -> bool:
    """Train the model of `sft` by GRPO with the verifier as its reward. After a kill, the same command resumes."""
    set_up_logging(verbose)
    from kernelquarry.recipes.train.grpo import train as train_grpo
    from kernelquarry.recipes.train.run_directory import trained_model
    from kernelquarry.recipes.train.trainer import TrainingJob

    name, recipe = _recipe(config, changes)
    folder = out or Path("out/train") / name
    job = TrainingJob(recipe, dataset, folder, model or trained_model(folder / "sft"), minutes)
    return _print_result("grpo", train_grpo(job, sandbox_settings(workers, gpus)))


def train(
    config: ConfigOption = "",
    dataset: DatasetOption = DATASET,
    out: OutOption = None,
    changes: SetOption = None,
    minutes: MinutesOption = 0.0,
    workers: WorkersOption = WORKERS,
    gpus: GpusOption = "all",
    verbose: VerboseOption = 0,
) -> None:
    """Run supervised training, GRPO, and evaluations of each model. Finished parts are skipped."""
    set_up_logging(verbose)
    from kernelquarry.recipes.evaluate.results import leaderboard
    from kernelquarry.recipes.evaluate.run_suite import EvaluationJob, run_suite
    from kernelquarry.recipes.train.run_directory import trained_model

    name, recipe = _recipe(config, changes)
    folder, settings = out or Path("out/train") / name, sandbox_settings(workers, gpus)
    end = time.monotonic() + 60 * minutes if minutes else math.inf
    for stage, command in (("sft", sft), ("grpo", partial(grpo, workers=workers, gpus=gpus))):
        if getattr(recipe, stage).steps and not trained_model(folder / stage):
            left = (end - time.monotonic()) / 60 if minutes else 0.0
            if left < 0 or not command(config, dataset, out, changes, "", left, verbose=verbose):
                return
    section, results = recipe.evaluation, []
    models = {"base": recipe.model.name, **{stage: trained_model(folder / stage) for stage in ("sft", "grpo")}}
    for stage, suite in product(section.stages, section.suites):
        if not models[stage]:
            continue
        update = dict(PROTOCOLS.get(suite, {}))
        if stage == "base" and section.base_modules:
            update["modules"] = section.base_modules
        job = EvaluationJob(
            model=models[stage],
            name=stage,
            suite=suite,
            source=section.kernelbench if suite == "kernelbench" else dataset,
            folder=evaluation_folder(folder, stage, suite),
            section=section.model_copy(update=update),
            levels=(1, 2, 3),
            chat=recipe.model.chat,
            base=recipe.model.name,
            held_out=recipe.held_out,
            trained_on=dataset,
            end=end,
        )
        found, is_done = run_suite(job, settings)
        results += found
        if not is_done:
            typer.echo(f"evaluation of {stage} on {suite} stopped; the same command goes on from there")
            break
    page = leaderboard(results) + "\n" + _last_example(folder, recipe)
    (folder / "leaderboard.md").write_text(page)
    typer.echo(f"{folder / 'leaderboard.md'}\n\n{page}")


def _last_example(folder: Path, recipe: Recipe) -> str:
    """The example of the last model that was evaluated, its loss, and what more training would need."""
    stages = [(stage, suite) for stage in recipe.evaluation.stages for suite in recipe.evaluation.suites]
    paths = [evaluation_folder(folder, *each) / "example.md" for each in stages]
    found = [path for path in paths if path.is_file()]
    lines = ["## What the last model writes", "", found[-1].read_text()] if found else []
    losses = [entry["loss"] for entry in read_lines(folder / "sft" / "curves.jsonl") if "loss" in entry]
    if losses:
        lines += [f"Training loss: {losses[0]:.2f} to {losses[-1]:.2f}, see {folder / 'sft' / 'curves.png'}.", ""]
    if not recipe.needs_gpu and recipe.sft.steps > 0:
        lines += [_LITTLE.format(steps=recipe.sft.steps), ""]
    return "\n".join(lines)


def evaluation_folder(folder: Path, stage: str, suite: str) -> Path:
    return folder / "evaluation" / (stage if suite == "test" else f"{stage}-{suite}")


def evaluate(
    model: Annotated[str, typer.Argument(help="Folder, GGUF file, id on the Hub, package:NAME, or endpoint's name.")],
    suite: Annotated[
        str, typer.Option(help="modules, slices, easy, test, embedded, kernelbench, tritonbench-g or tritonbench-t.")
    ] = "test",
    source: Annotated[str, typer.Option(help="Dataset of held-out rows, or checkout of a benchmark.")] = "",
    level: Annotated[list[int] | None, typer.Option(help="Level of KernelBench; may be repeated.")] = None,
    endpoint: EndpointOption = "",
    chat: ChatOption = "",
    base: Annotated[str, typer.Option(help="Model of an adapter, if it is not where the adapter says.")] = "",
    samples: Annotated[int, typer.Option(min=1, help="Answers to each problem.")] = 10,
    problems: Annotated[int, typer.Option(min=0, help="Problems of the suite, or of each level; 0: all.")] = 0,
    temperature: TemperatureOption = 1.0,
    top_p: TopPOption = 0.97,
    new_tokens: NewTokensOption = 2048,
    batch: Annotated[int, typer.Option(min=1, help="Answers that a local model writes in parallel.")] = 64,
    slots: Annotated[bool, typer.Option(help="Use the built-in decoder, for small models on a GPU.")] = False,
    prompt_tokens: Annotated[int, typer.Option(min=0, help="Leave out and count longer prompts; 0: none.")] = 0,
    time_answers: Annotated[
        bool, typer.Option("--time/--no-time", help="Time right first answers if there is a GPU.")
    ] = True,
    weaker_checks: Annotated[bool, typer.Option(help="Also score by the benchmark's and a naive check.")] = True,
    held_out: Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of the clusters, as in the recipe.")] = 0.0,
    trained_on: Annotated[str, typer.Option(help="Dataset of the training, for the search for copies.")] = "",
    minutes: Annotated[float, typer.Option(help="Time limit; the same command goes on; 0: none.")] = 0.0,
    answers_only: Annotated[bool, typer.Option(help="Write answers; the same command without it scores them.")] = False,
    out: Annotated[Path | None, typer.Option(help="Output folder.", show_default="out/evaluation/MODEL/SUITE")] = None,
    workers: WorkersOption = WORKERS,
    gpus: GpusOption = "all",
    verbose: VerboseOption = 0,
) -> None:
    """Evaluate a model on a suite by our verifier and the suite's own check. After a kill, the same command resumes."""
    set_up_logging(verbose)
    from kernelquarry.recipes.config import EvaluationSection
    from kernelquarry.recipes.evaluate.problems import DATASET_SUITES
    from kernelquarry.recipes.evaluate.results import render
    from kernelquarry.recipes.evaluate.run_suite import EvaluationJob, run_suite

    section = EvaluationSection(
        samples=samples,
        modules=problems,
        temperature=temperature,
        top_p=top_p,
        new_tokens=new_tokens,
        batch=batch,
        slots=slots,
        prompt_tokens=prompt_tokens,
        weaker_checks=weaker_checks,
        timed=time_answers,
    )
    folder = out or Path("out/evaluation") / model.strip("/").replace("/", "--").replace(":", "--") / suite
    job = EvaluationJob(
        model=model,
        name=model,
        suite=suite,
        source=source or (DATASET if suite in DATASET_SUITES else ""),
        folder=folder,
        section=section,
        levels=tuple(level or ()),
        endpoint=endpoint,
        chat=chat,
        base=base,
        held_out=held_out,
        trained_on=trained_on,
        end=time.monotonic() + 60 * minutes if minutes else math.inf,
        answers_only=answers_only,
    )
    results, is_done = run_suite(job, sandbox_settings(workers, gpus))
    typer.echo(render(results) or f"{folder / 'answers.jsonl'}")
    if not is_done:
        typer.echo("not done: the same command goes on from there", err=True)


def write(
    module: Annotated[
        Path | None, typer.Argument(help="File with Model, get_inputs() and get_init_inputs(); without one, a REPL.")
    ] = None,
    model: Annotated[str, typer.Option(help="Folder, id on the Hub, package:NAME, or name at the endpoint.")] = MODEL,
    endpoint: EndpointOption = "",
    n: Annotated[int, typer.Option("-n", min=1, help="Candidates, of which the best is output.")] = 1,
    verify: Annotated[bool, typer.Option(help="Verify each candidate.")] = True,
    time: Annotated[bool, typer.Option(help="Time right candidates if there is a GPU.")] = False,
    temperature: TemperatureOption = 1.0,
    top_p: TopPOption = 0.97,
    new_tokens: NewTokensOption = 2048,
    out: Annotated[Path | None, typer.Option(help="File for the kernel.", show_default="print it")] = None,
    workers: WorkersOption = WORKERS,
    gpus: GpusOption = "all",
) -> None:
    """Write a kernel for a module with a model, and verify it. The exit status is 1 if no candidate is right."""
    from kernelquarry.recipes.config import EvaluationSection
    from kernelquarry.recipes.generate.repl import Repl
    from kernelquarry.recipes.generate.writer import KernelWriter

    if module is not None and not module.is_file():
        raise UserError(f"{module}: no such file: give a file that defines Model, get_inputs() and get_init_inputs()")
    section = EvaluationSection(temperature=temperature, top_p=top_p, new_tokens=new_tokens, batch=min(n, 64))
    with KernelWriter(model, endpoint, section, sandbox_settings(workers, gpus)) as writer:
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
    name: Annotated[str, typer.Option(help="Name of the model in requests.", show_default="MODEL")] = "",
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at; 0: any free port.")] = 8000,
    chat: ChatOption = "",
    slots: Annotated[
        int | None, typer.Option(min=1, help="Parallel answers.", show_default="128 on a GPU, else 8")
    ] = None,
    context: Annotated[int, typer.Option(min=16, help="Most tokens of a prompt and its answer.")] = 8192,
    verbose: VerboseOption = 0,
) -> None:
    """Serve a small model with an OpenAI-compatible API, for example as a teacher (docs/guides/distillation.md)."""
    set_up_logging(verbose)
    check_installed("transformers")
    import asyncio

    import torch

    from kernelquarry.recipes.generate.serve import SlotModel
    from kernelquarry.recipes.generate.serve import serve as listen

    slots = slots or (128 if torch.cuda.is_available() else 8)
    asyncio.run(listen(SlotModel(model, name, chat, slots, context), host, port))


def leaderboard(
    folder: Annotated[Path, typer.Argument(help="Folder of evaluations, at any depth.")] = Path("out"),
    out: Annotated[Path, typer.Option(help="Output file.")] = Path("out/leaderboard.md"),
) -> None:
    """Write one Markdown page of all evaluations below a folder."""
    from kernelquarry.recipes.evaluate.results import leaderboard as page
    from kernelquarry.recipes.evaluate.results import read_results

    results = read_results(folder)
    if not results:
        raise UserError(f"{folder} holds no results: make some with `kernelquarry evaluate MODEL`")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(results))
    typer.echo(out)


COMMANDS = (sft, grpo, train, evaluate, leaderboard, write, serve)


def default_recipe() -> str:
    import torch

    return "smollm2-135m" if torch.cuda.is_available() else "smollm2-135m-cpu"


def _recipe(config: str, changes: list[str] | None) -> tuple[str, Recipe]:
    """The name of the recipe's folder, and the recipe."""
    check_installed()
    from kernelquarry.recipes.config import load_recipe

    name = config or default_recipe()
    return Path(name).stem if name.endswith(".toml") else name, load_recipe(name, changes or ())


def check_installed(*needed: str) -> None:
    """Raise a `UserError` if one of the packages (default: all that training needs) is not installed."""
    from importlib.util import find_spec

    needed = needed or ("transformers", "trl", "peft", "accelerate")
    if missing := [name for name in needed if find_spec(name) is None]:
        raise UserError(f"{', '.join(missing)} missing: make train, or pip install 'kernelquarry[build,train]'")


def _print_result(name: str, result: TrainResult) -> bool:
    """Print where the stage's model is, or how far it came. Returns: True if the stage is done."""
    stopped = f"stopped at step {result.steps}; the same command goes on from there"
    typer.echo(f"{name}: {result.model if result.done else stopped}")
    return result.done
