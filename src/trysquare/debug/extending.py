"""Extending: what we add to pydevd inside the program, by the way that pydevd has for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "extension"


def with_extension(given: Mapping[str, str]) -> dict[str, str]:
    """What is set for a program, with pydevd's way to our extension. What the program itself imports stays first."""
    path = given.get("PYTHONPATH", os.environ.get("PYTHONPATH"))
    return {**given, "PYTHONPATH": f"{path}{os.pathsep}{FOLDER}" if path else str(FOLDER)}
