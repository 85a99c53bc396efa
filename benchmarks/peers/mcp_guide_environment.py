"""mcp-guide in an environment of its own: made once with pip, by name and version, under `benchmarks/.peers/`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.known import ROOT

PEERS_FOLDER = ROOT / "benchmarks" / ".peers"


@dataclass(frozen=True, kw_only=True, slots=True)
class Pins:
    """A version of mcp-guide with what it runs with. Newer FastMCPs than this one make it forget its project."""

    version: str
    python: tuple[int, int]
    others: tuple[str, ...] = ("fastmcp==3.4.9",)


NEWEST = Pins(version="1.4.0", python=(3, 13))
FOR_OLDER_PYTHON = Pins(version="1.1.0", python=(3, 11))


@dataclass(frozen=True, kw_only=True, slots=True)
class Original:
    """An mcp-guide that can be started."""

    command: Path
    version: str


def original() -> Original | str:
    """The installed mcp-guide, or one line that says why there is none."""
    python = _python(*NEWEST.python)
    pins = NEWEST if python is not None else FOR_OLDER_PYTHON
    folder = PEERS_FOLDER / f"mcp-guide-{pins.version}"
    command = folder / "bin" / "mcp-guide"
    if not command.exists():
        failed = _install(python or sys.executable, folder, pins)
        if failed:
            return f"mcp-guide {pins.version} cannot be had here, so only our own figures are shown: {failed}"
    return Original(command=command, version=pins.version)


def _install(python: str, folder: Path, pins: Pins) -> str | None:
    print(f"installing mcp-guide {pins.version} into {folder.relative_to(ROOT)}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    packages = [f"mcp-guide=={pins.version}", *pins.others]
    for command in (
        [python, "-m", "venv", str(folder)],
        [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages],
    ):
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        if run.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            return (run.stderr.strip().splitlines() or ["no reason given"])[-1]
    return None


def _python(major: int, minor: int) -> str | None:
    """A Python of at least that version, if there is one."""
    if sys.version_info >= (major, minor):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [shutil.which(f"python{major}.{minor}"), *sorted(map(str, pyenv.glob(f"{major}.{minor}.*/bin/python")))]
    return next((each for each in found if each and _runs(each)), None)


def _runs(python: str) -> bool:
    # A shim may stand for a version that is not switched on.
    return subprocess.run([python, "--version"], capture_output=True, check=False).returncode == 0
