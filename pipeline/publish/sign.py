"""Signatures of a manifest, and by it of every file, by OpenSSH: keys that people have, and a tool that is everywhere.

    ssh-keygen -Y verify -f allowed_signers -I name@example.org -n kernelquarry \\
        -s manifest.json.sig < manifest.json
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError

SIGNATURE = "manifest.json.sig"
NAMESPACE = "kernelquarry"  # a signature made for something else does not count


def sign(manifest: Path, key: Path) -> Path:
    """Write the signature beside the manifest. Raises: UserError: there is no such key, or no OpenSSH."""
    signature = manifest.with_name(SIGNATURE)
    done = _keygen("sign", "-f", str(key), stdin=manifest.read_bytes())
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(f"{key}: cannot sign with it: {said[-1] if said else 'ssh-keygen failed'}")
    signature.write_bytes(done.stdout)
    return signature


def is_signed(manifest: Path) -> bool:
    """Whether the signature beside the manifest is of it, whoever's it is. Raises: UserError: there is no OpenSSH."""
    signature = manifest.with_name(SIGNATURE)
    return _keygen("check-novalidate", "-s", str(signature), stdin=manifest.read_bytes()).returncode == 0


def _keygen(action: str, *arguments: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    command = ["ssh-keygen", "-Y", action, "-n", NAMESPACE, *arguments]
    try:
        return subprocess.run(command, input=stdin, capture_output=True, check=False)
    except FileNotFoundError:
        raise UserError("signatures are made and checked by ssh-keygen: install OpenSSH's client") from None
