"""Small bots, written into a folder: one that is right, and how to spoil it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MINIMAL: dict[str, Any] = {
    "bot_config.json": {"name": "mini", "behaviors": ["shape", "code"]},
    "base_actions/1_initialize_project/action_config.json": {"name": "initialize_project", "workflow": True},
    "base_actions/2_gather_context/action_config.json": {"name": "gather_context", "workflow": True},
    "base_actions/3_build_knowledge/action_config.json": {"name": "build_knowledge", "workflow": True},
    "base_actions/correct_bot/action_config.json": {"name": "correct_bot", "workflow": False},
    "behaviors/1_shape/instructions.json": {"description": "Shape it.", "goal": "A map."},
    "behaviors/2_code/instructions.json": {"description": "Code it.", "goal": "It works."},
}


def write_bot(root: Path, changes: Mapping[str, Any] | None = None) -> Path:
    """Write the minimal bot with some files changed, added, or (with None) left out. A text is written as it is."""
    for path, content in {**MINIMAL, **(changes or {})}.items():
        if content is None:
            continue
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8")
    return root
