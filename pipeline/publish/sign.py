"""Signs a manifest, and so every file in it, with OpenSSH. To verify the signer:

    ssh-keygen -Y verify -f allowed_signers -I name@example.org -n kernelquarry \\
        -s manifest.json.sig < manifest.json
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from kernelquarry.pipeline.schema.errors import UserError

SIGNATURE = "manifest.json.sig"
NAMESPACE = "kernelquarry"  # rejects signatures that were made for another purpose


def sign(manifest: Path, key: Path) -> Path:
    """Write the signature next to the manifest. Raises: UserError: the key or OpenSSH is missing."""
    signature = manifest.with_name(SIGNATURE)
    done = _keygen("sign", "-f", str(key), stdin=manifest.read_bytes())
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise UserError(f"{key}: cannot sign with it: {lines[-1] if lines else 'ssh-keygen failed'}")
    signature.write_bytes(done.stdout)
    return signature


def is_signed(manifest: Path) -> bool:
    """True if the signature next to the manifest matches it, with any key. Raises: UserError: OpenSSH is missing."""
    signature = manifest.with_name(SIGNATURE)
    return _keygen("check-novalidate", "-s", str(signature), stdin=manifest.read_bytes()).returncode == 0


def _keygen(action: str, *arguments: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    command = ["ssh-keygen", "-Y", action, "-n", NAMESPACE, *arguments]
    try:
        return subprocess.run(command, input=stdin, capture_output=True, check=False)
    except FileNotFoundError:
        raise UserError("signatures need ssh-keygen: install the OpenSSH client") from None
