"""SSH keys of approvers, made for a test, and the commands with which they sign."""

from __future__ import annotations

import subprocess
from pathlib import Path

from trysquare.cli.main import main

ADA, BOB, EVE = "ada@example.org", "bob@example.org", "eve@example.org"


def make_key(folder: Path, name: str) -> Path:
    """A key without a passphrase."""
    key = folder / name.partition("@")[0]
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)]
    subprocess.run(words, check=True, capture_output=True)
    return key


def allow(project: Path, **keys: Path) -> Path:
    """Make the keys those of approvers of a project, by the first part of their names."""
    lines = [f"{who}@example.org {_public(key)}\n" for who, key in keys.items()]
    file = project / ".trysquare-approvers"
    file.write_text("".join(lines), encoding="utf-8")
    return file


def _public(key: Path) -> str:
    return " ".join(key.with_suffix(".pub").read_text(encoding="utf-8").split()[:2])


def sign_code(project: Path, code: str, key: Path, *more: str) -> int:
    """Approve a code with a key, as an approver does in a terminal; returns the exit status."""
    return main(["approve", code, "--sign", str(key), "--project", str(project), *more])
