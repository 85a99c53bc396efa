"""Places: where installed models lie."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def models_folder(env: Mapping[str, str] = os.environ) -> Path:
    """The folder of installed models, in the user's data folder."""
    base = env.get("XDG_DATA_HOME", "")
    # The XDG rules say that a relative path is to be ignored.
    root = Path(base) if base.startswith("/") else Path(env.get("HOME") or Path.home()) / ".local" / "share"
    return root / "trysquare" / "models"


def weights_file(name: str, env: Mapping[str, str] = os.environ) -> Path:
    """Where the weights of a model lie, or would lie."""
    return models_folder(env) / f"{name}.gguf"
