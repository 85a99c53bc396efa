"""xgrammar in an environment of its own, because it cannot be imported without PyTorch."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.peers.known import ROOT

VERSION = "0.2.8"
PACKAGES = (f"xgrammar=={VERSION}", "torch==2.13.0", "transformers", "numpy")
FOLDER = ROOT / "benchmarks" / ".peers" / f"xgrammar-{VERSION}"
PEER = Path(__file__).with_name("xgrammar_peer.py")


def xgrammar_milliseconds(work: dict[str, Any]) -> float | None:
    """CPU until xgrammar gives the first mask for a schema; None where it cannot be had."""
    python = _python()
    if python is None:
        return None
    run = subprocess.run(
        [str(python), str(PEER)], input=json.dumps(work), capture_output=True, text=True, check=False, cwd=ROOT
    )
    if run.returncode:
        raise RuntimeError(f"xgrammar failed: {run.stderr[-2000:]}")
    return float(run.stdout.splitlines()[-1])


@cache
def _python() -> Path | None:
    python = FOLDER / "bin" / "python"
    if not python.exists() and (failed := _install()):
        print(f"xgrammar {VERSION} cannot be had here and is left out: {failed}", file=sys.stderr)
        return None
    return python


def _install() -> str | None:
    print(f"installing xgrammar {VERSION} with PyTorch into {FOLDER.relative_to(ROOT)}", file=sys.stderr)
    for command in (
        [sys.executable, "-m", "venv", str(FOLDER)],
        [str(FOLDER / "bin" / "python"), "-m", "pip", "install", "--quiet", *PACKAGES],
    ):
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        if run.returncode:
            shutil.rmtree(FOLDER, ignore_errors=True)
            return (run.stderr.strip().splitlines() or ["no reason given"])[-1]
    return None
