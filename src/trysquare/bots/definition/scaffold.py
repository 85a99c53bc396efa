"""Template of `trysquare bot new`: a small complete bot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trysquare.bots.definition.folder import is_name
from trysquare.core.errors import ConfigurationError

_MAP = "docs/story-graph.json"

_ACTIONS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "1_initialize_project": (
        {"workflow": True, "policy": "auto", "description": "Confirm the project directory."},
        ["Name the project directory. If the result asks for confirmation, ask the user and wait."],
        ["start the project", "use this folder"],
    ),
    "2_gather_context": (
        {"workflow": True, "description": "Answer the key questions."},
        [
            "Answer every key question in one or two sentences and name the source of each answer.",
            'Write "unknown" where nothing answers it. Show the user all answers, then save them with `answers`.',
        ],
        ["gather context", "ask questions"],
    ),
    "3_build_knowledge": (
        {"workflow": True, "description": "Write the document."},
        [
            "Write the document to the file that is named, in the shape of its template.",
            "Use only what the answers say. Show the user the document.",
        ],
        ["build the map", "write the stories"],
    ),
    "4_validate_rules": (
        {"workflow": True, "description": "Check the document against the rules."},
        ["Fix every reported violation, and tell the user which ones you leave and why."],
        ["check the rules", "validate"],
    ),
    "correct_bot": (
        {"workflow": False, "description": "Make a correction part of the bot."},
        ["Turn the correction into a rule, a question or an instruction of this bot, and show the change."],
        ["correct the bot", "add a rule"],
    ),
}

_BEHAVIORS: dict[str, dict[str, Any]] = {
    "1_shape": {
        "goal": "A map of the stories: who does what, in which order.",
        "questions": ["Who will use it?", "What can they not do today?", "How will they notice that it works?"],
        "evidence": ["Notes and messages in the project's folder"],
        "triggers": ["shape the work", "make a story map"],
    },
    "2_explore": {
        "goal": "Every story says when it is done.",
        "questions": ["Which story comes first?", "What could go wrong in it?"],
        "evidence": [f"The map in {_MAP}"],
        "triggers": ["explore a story", "write acceptance criteria"],
    },
}

_RULE: dict[str, Any] = {
    "description": "A story's name says what somebody does, not that something is managed.",
    "severity": "error",
    "scanner": {
        "kind": "regex",
        "pattern": r"\b(manage|handle|support|process)\b",
        "ignore_case": True,
        "applies_to": "story.name",
        "message": "Name what the user does.",
    },
    "do": {"description": "Name the act.", "examples": ["Book a table"]},
    "dont": {"description": "Name the theme.", "examples": ["Manage reservations"]},
}

_TEMPLATE: dict[str, Any] = {
    "schema": 1,
    "product": "Name of the product",
    "goal": "What changes for its users",
    "epics": [
        {
            "name": "What they come for",
            "stories": [
                {
                    "name": "Book a table",
                    "users": ["Guest"],
                    "acceptance_criteria": [{"when": "a guest picks a free time", "then": "the table is theirs"}],
                }
            ],
        }
    ],
    "increments": [],
}


def template_files(name: str) -> dict[str, str]:
    documents: dict[str, Any] = {
        "bot_config.json": {"name": name, "description": "Maps the stories of a product."},
        "instructions.json": {"goal": "A map that a team can act on.", "instructions": ["One action at a time."]},
        "trigger_words.json": {"trigger_patterns": ["continue the map", "work on the stories"]},
        "rules/names_say_what_is_done.json": _RULE,
    }
    for folder, (config, instructions, triggers) in _ACTIONS.items():
        documents[f"base_actions/{folder}/action_config.json"] = config
        documents[f"base_actions/{folder}/instructions.json"] = {"instructions": instructions}
        documents[f"base_actions/{folder}/trigger_words.json"] = {"trigger_patterns": triggers}
    for folder, about in _BEHAVIORS.items():
        documents.update(_behavior(f"behaviors/{folder}", about))
    return {path: json.dumps(content, indent=2, ensure_ascii=False) + "\n" for path, content in documents.items()}


def _behavior(folder: str, about: dict[str, Any]) -> dict[str, Any]:
    rails = f"{folder}/1_guardrails/1_required_context"
    return {
        f"{folder}/instructions.json": {"goal": about["goal"]},
        f"{folder}/trigger_words.json": {"trigger_patterns": about["triggers"]},
        f"{rails}/key_questions.json": {"questions": about["questions"]},
        f"{rails}/evidence.json": {"evidence": about["evidence"]},
        f"{folder}/2_content/1_knowledge_graph/story-graph.json": _TEMPLATE,
        f"{folder}/2_content/1_knowledge_graph/build_story_graph.json": {
            "name": "story_graph",
            "path": "docs",
            "template": "story-graph.json",
            "output": "story-graph.json",
        },
    }


GALLERY = Path(__file__).parent.parent / "gallery"
TEMPLATES = ("checklist", "release", "incident", "spec", "story")
"""Small bots to start from, each of a few files."""


def gallery_files(template: str, name: str) -> dict[str, str]:
    """The files of a bot of the gallery, under another name."""
    root = GALLERY / template
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    files = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    for path, before, after in (
        ("bot_config.json", f'"name": "{template}"', f'"name": "{name}"'),
        ("README.md", f"# {template}\n", f"# {name}\n"),
    ):
        files[path] = files[path].replace(before, after, 1)
    return files


def write_new_bot(folder: Path, name: str, template: str | None = None) -> list[str]:
    """Write a new bot into a folder that does not exist yet; returns its files."""
    if not is_name(name):
        raise ConfigurationError(
            f"Invalid bot name `{name}`.", hint="Use lower-case letters, digits and single underscores: my_bot."
        )
    if folder.exists():
        raise ConfigurationError(
            "already exists.", where=str(folder), hint="Choose another name, or another directory with --into."
        )
    files = template_files(name) if template is None else gallery_files(template, name)
    try:
        for path, text in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"the bot cannot be written: {error.strerror}.", where=str(folder)) from None
    return sorted(files)
