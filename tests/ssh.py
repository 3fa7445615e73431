"""Keys to sign with."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_key(folder: Path) -> Path:
    """A new private key, without a passphrase."""
    path = folder / "key"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "someone@example.org", "-f", str(path)]
    subprocess.run(command, check=True)
    return path
