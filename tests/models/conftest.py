"""The tiny model that the tests of the local runtime share."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.models.tiny_gguf import write_tiny_gguf
from tests.support import missing_component


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF file with random weights."""
    for module in ("gguf", "xllamacpp", "llguidance"):
        if importlib.util.find_spec(module) is None:
            missing_component(module, "install the extra `local` and the group `dev`")
    return write_tiny_gguf(tmp_path_factory.mktemp("weights") / "tiny.gguf")
