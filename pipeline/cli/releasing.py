"""Commands on finished datasets that others read: publishing one, and taking rows out of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DATASET = Path("out/tiny/dataset")
OptOutOption = Annotated[Path | None, typer.Option(help="List of those whose code is left out, see docs/opt-out.md.")]


def add_release_commands(app: typer.Typer) -> None:
    """Adds `publish` and `withdraw`."""
    for command in (publish, withdraw):
        app.command()(command)


def publish(
    repo: Annotated[str, typer.Argument(help="Repository on the Hub, owner/name. It is made if it is not there.")],
    dataset: Annotated[Path, typer.Option(help="Dataset folder.")] = DATASET,
    private: Annotated[bool, typer.Option("--private", help="Make the repository private.")] = False,
    revision: Annotated[str, typer.Option(help="Branch to publish to. It is made if it is not there.")] = "main",
    tag: Annotated[str, typer.Option(help="Name of the release.  [default: release and digest]")] = "",
    sign: Annotated[Path | None, typer.Option(help="SSH key to sign the manifest with.")] = None,
    opt_out: OptOutOption = None,
    uncompared: Annotated[
        bool, typer.Option("--uncompared", help="Publish rows that were compared with no benchmark.")
    ] = False,
    pull_request: Annotated[
        bool, typer.Option("--pr", help="Open a pull request, and leave the branch alone.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
) -> None:
    """Publish a dataset on the Hugging Face Hub: one commit and a tag, or a pull request, if every gate agrees."""
    from huggingface_hub import HfApi

    from kernelquarry.pipeline.publish import gates
    from kernelquarry.pipeline.publish.hub import Target, plan
    from kernelquarry.pipeline.publish.hub import publish as send
    from kernelquarry.pipeline.publish.pull_request import propose

    target = Target(repo, revision, private, tag)
    contents = gates.read_contents(dataset, opt_out, uncompared)
    if sign is not None and not dry_run:
        from kernelquarry.pipeline.publish.sign import sign as sign_manifest

        sign_manifest(dataset / "manifest.json", sign)
    gates.demand(contents)
    if dry_run:
        typer.echo(f"every gate passes; {plan(dataset, target, HfApi()).summary()}; nothing was done")
        return
    if pull_request:
        asked = propose(dataset, target, HfApi())
        where = f"pull request {asked.number} of {repo}" if asked.number else repo
        typer.echo(f"{where} at {asked.commit}; {asked.changed} files {'differ' if asked.number else 'to change'}")
        return
    done = send(dataset, target, HfApi())
    did = f"{done.changed} files changed" if done.changed else "nothing to do"
    typer.echo(f"{repo} at {done.commit}, tagged {done.tag}; {did}")


def withdraw(
    dataset: Annotated[str, typer.Argument(help="Dataset folder, or repository on the Hub.")],
    opt_out: OptOutOption = None,
    revision: Annotated[str, typer.Option(help="Branch of the repository.")] = "main",
    tag: Annotated[str, typer.Option(help="Name of the new release.  [default: release and digest]")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say which rows would go, and do nothing.")] = False,
) -> None:
    """Take out the rows of whoever opted out: a folder is written anew, a repository gets a new revision."""
    from kernelquarry.pipeline.publish.withdraw import withdraw_from_folder, withdraw_from_hub

    if Path(dataset).is_dir():
        typer.echo(withdraw_from_folder(Path(dataset), opt_out, dry_run).summary())
        return
    from huggingface_hub import HfApi

    from kernelquarry.pipeline.publish.hub import Target

    withdrawn, done = withdraw_from_hub(Target(dataset, revision, tag=tag), opt_out, HfApi(), dry_run)
    typer.echo(withdrawn.summary())
    if done is not None:
        typer.echo(f"{dataset} at {done.commit}, tagged {done.tag}")
