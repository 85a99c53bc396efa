"""Extending: what we add to pydevd inside the program, by the way that pydevd has for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "extension"


def with_extension(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a program in which pydevd finds our extension. What the program itself imports stays first."""
    path = environment.get("PYTHONPATH")
    return {**environment, "PYTHONPATH": f"{path}{os.pathsep}{FOLDER}" if path else str(FOLDER)}
