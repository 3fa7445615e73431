"""Commands that publish a dataset and withdraw rows from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import DATASET, OptOutOption


def publish(
    repo: Annotated[str, typer.Argument(help="Repository on the Hub, owner/name; created if missing.")],
    dataset: Annotated[Path, typer.Option(help="Dataset folder.")] = DATASET,
    private: Annotated[bool, typer.Option("--private", help="Make the repository private.")] = False,
    revision: Annotated[str, typer.Option(help="Branch to publish to; created if missing.")] = "main",
    tag: Annotated[str, typer.Option(help="Tag of the release.", show_default="version and digest")] = "",
    sign: Annotated[Path | None, typer.Option(help="SSH key to sign the manifest with.")] = None,
    opt_out: OptOutOption = None,
    uncompared: Annotated[
        bool, typer.Option("--uncompared", help="Publish even if rows were compared with no benchmark.")
    ] = False,
    pull_request: Annotated[bool, typer.Option("--pr", help="Open a pull request instead of a commit.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the changes without making them.")] = False,
) -> None:
    """Publish a dataset on the Hugging Face Hub, as a tagged commit or a pull request, if it passes every gate."""
    from huggingface_hub import HfApi

    from kernelquarry.pipeline.publish import gates
    from kernelquarry.pipeline.publish.hub import Target, plan
    from kernelquarry.pipeline.publish.hub import publish as publish_folder
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
        proposed = propose(dataset, target, HfApi())
        where = f"pull request {proposed.number} of {repo}" if proposed.number else repo
        typer.echo(f"{where} at {proposed.commit}; {proposed.changed} files differ from the main branch")
        return
    done = publish_folder(dataset, target, HfApi())
    changes = f"{done.changed} files changed" if done.changed else "nothing to do"
    typer.echo(f"{repo} at {done.commit}, tagged {done.tag}; {changes}")


def withdraw(
    dataset: Annotated[str, typer.Argument(help="Dataset folder, or repository on the Hub.")],
    opt_out: OptOutOption = None,
    revision: Annotated[str, typer.Option(help="Branch of the repository.")] = "main",
    tag: Annotated[str, typer.Option(help="Tag of the new release.", show_default="version and digest")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the number of rows without removing them.")] = False,
) -> None:
    """Remove the rows of authors who opted out, from a folder or as a new revision of a repository."""
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
