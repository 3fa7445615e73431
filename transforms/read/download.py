"""Download files that a requirements file pins: with pip, from the index that pip is configured for, or by URL."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError

# Only sources are read, so every machine downloads the same wheels, whatever its own platform.
_PLATFORM = ("--platform", "manylinux_2_28_x86_64", "--python-version", "3.11", "--implementation", "cp")
_TIMEOUT_S = 3600
_NOT_OFFERED = ("No matching distribution found", "DO NOT MATCH THE HASHES", " is invalid.")
_NOT_REACHED = ("Retrying (", "Failed to establish", "Could not fetch URL", "timed out")
_STALLED_S = 60  # time without a byte


class NotOffered(UserError):
    """The package index no longer offers a pinned file, or offers a damaged one."""


@contextmanager
def download(requirements: Sequence[str], folder: Path) -> Iterator[list[Path]]:
    """Download pinned requirements to a temporary folder inside `folder`.

    Raises:
        NotOffered: the index lacks a file, serves another one under its name, or a damaged one.
        UserError: pip is missing, or failed otherwise.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="download-", dir=folder) as scratch:
        pip = _pinned_pip(Path(scratch))
        target = Path(scratch) / "files"
        _run([str(pip / "pip")], requirements, target, folder, *_PLATFORM)
        yield sorted(target.iterdir())


@contextmanager
def download_urls(urls: Sequence[str], folder: Path) -> Iterator[list[Path]]:
    """Download URLs to a temporary folder inside `folder`, without pip, which would build source distributions.

    Raises:
        UserError: a download failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="download-", dir=folder) as scratch:
        files = []
        for index, url in enumerate(urls):
            files.append(Path(scratch, str(index)))
            try:
                with urllib.request.urlopen(url, timeout=_STALLED_S) as response, files[-1].open("wb") as stream:
                    shutil.copyfileobj(response, stream)
            except (urllib.error.URLError, OSError, ValueError) as error:
                raise UserError(f"{url}: {error}: check the network and the URL, and run again") from None
        yield files


def _pinned_pip(scratch: Path) -> Path:
    """Download a fixed version of pip, whose wheel can be run: versions differ in the metadata that they accept."""
    shipped = resources.files("kernelquarry.transforms.read").joinpath("shipped", "downloader.txt")
    _run(["-m", "pip"], shipped.read_text().splitlines(), scratch / "pip", scratch.parent)
    (wheel,) = (scratch / "pip").glob("*.whl")
    return wheel


def _run(pip: list[str], requirements: Sequence[str], target: Path, folder: Path, *options: str) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".txt", dir=target.parent) as listed:
        listed.write("\n".join(requirements) + "\n")
        listed.flush()
        command = [sys.executable, *pip, "--disable-pip-version-check", "--no-input", "download", "--quiet"]
        command += ["--no-deps", "--only-binary=:all:", "--require-hashes", "--ignore-requires-python"]
        command += [*options, "--dest", str(target), "--requirement", listed.name]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise UserError(f"pip did not finish in {_TIMEOUT_S} s: check the network and run again") from None
    if done.returncode:
        offered = any(text in done.stderr for text in _NOT_REACHED) or not any(t in done.stderr for t in _NOT_OFFERED)
        raise (UserError if offered else NotOffered)(_explain(done.stderr, folder))


def _explain(stderr: str, folder: Path) -> str:
    if "No module named pip" in stderr:
        return f"{sys.executable} has no pip to download with: run `{sys.executable} -m ensurepip`"
    if "DO NOT MATCH THE HASHES" in stderr:
        return (
            "the package index serves another file than the corpus pins, or the download was interrupted: "
            "run again; if the error persists, do not use the file, or correct the pin"
        )
    errors = [line.removeprefix("ERROR: ") for line in stderr.splitlines() if line.startswith("ERROR: ")]
    message = (errors or stderr.strip().splitlines() or ["no message"])[-1]
    return (
        f"pip could not download the corpus into {folder} ({message}): check the network or pip's index, and run again"
    )
