"""Sandbox backends of this machine: bubblewrap, else Landlock."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.processes.sandbox.landlock_exec import missing as missing_landlock

BACKENDS = ("bubblewrap", "landlock")


def available_sandbox(wanted: tuple[str, ...]) -> str | None:
    """The first of the wanted backends that works here."""
    return next((backend for backend in wanted if _unavailable_reason(backend) is None), None)


def sandbox_unavailable(wanted: tuple[str, ...]) -> ToolError:
    reasons = "; ".join(f"{backend}: {_unavailable_reason(backend)}" for backend in wanted) or "none is allowed"
    return ToolError(
        f"No sandbox is available ({reasons}). Commands run only in a sandbox.",
        code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
        instruction="Work without commands. The user can install bubblewrap (Debian package `bubblewrap`).",
    )


@cache
def _unavailable_reason(backend: str) -> str | None:
    """Try a backend; None if it works, else the reason."""
    if backend == "landlock":
        return missing_landlock()
    program = shutil.which("bwrap")
    if program is None:
        return "bwrap is not installed"
    trial = [program, "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "true"]
    ran = subprocess.run(trial, capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    return None if ran.returncode == 0 else ran.stderr.decode("utf-8", "replace").strip()[:200] or "it fails"
