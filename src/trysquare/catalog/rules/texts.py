"""Rules about every text that a model reads: nothing hidden in it, and no orders to the model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from trysquare.catalog.rules.rule import LintOptions, Problem
from trysquare.catalog.rules.schema_nodes import nodes
from trysquare.core.tool import Tool
from trysquare.core.untrusted import hidden_characters

_BLANK_PICTURE = "\u2800"
_COMMANDS = (
    r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|other|all|system)\b.{0,20}"
    r"\b(?:instructions?|prompts?|rules|messages?|tools?|context)\b",
    r"\b(?:do not|don't|never)\b.{0,15}\b(?:tell|inform|mention|reveal|show|notify|alert)\b.{0,25}"
    r"\b(?:user|person|human)",
    r"\b(?:always|must)\b.{0,20}\b(?:call|use|invoke|run)\b.{0,20}\bthis (?:tool )?(?:first|before)\b",
    r"\bbefore (?:using|calling) any other tool\b",
    r"</?\s*(?:system|important|instructions?|assistant|secret)\s*>",
    r"\b(?:your|the) system prompt\b",
    r"\b(?:secretly|without (?:asking|telling|the user'?s? knowledge))\b",
    r"\byou are now\b",
)
_COMMAND = re.compile("|".join(_COMMANDS), re.IGNORECASE | re.DOTALL)


def texts_of(tool: Tool) -> Iterator[tuple[str | None, str]]:
    """Every text of a tool that a model reads, with its place."""
    metadata = tool.metadata
    yield None, tool.description
    yield "title", tool.title or ""
    for name in ("use_when", "avoid_when", "limits", "usage", "deprecated", "category"):
        yield name, getattr(metadata, name) or ""
    yield "trigger_words", " ".join(metadata.trigger_words)
    for example in metadata.examples:
        yield "examples", example.explanation
    for node in nodes(tool.input_schema):
        yield node.path or None, node.text("description")


def no_hidden_characters(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A person who reads a text sees all that a model reads."""
    for place, text in texts_of(tool):
        hidden = sorted(f"U+{ord(char):04X}" for char in _hidden_in(text))
        if hidden:
            yield Problem(
                field=place,
                message=f"The text holds characters that nobody sees: {', '.join(hidden[:5])}.",
                fix="Remove them; text that only a model can read is how tools are poisoned.",
            )


def _hidden_in(text: str) -> set[str]:
    """What cannot be seen, and what a description of one's own has no use for: private and unassigned characters."""
    odd = {char for char in set(text) if unicodedata.category(char) in ("Co", "Cn", "Cs", "Zl", "Zp")}
    return hidden_characters(text) | odd | ({_BLANK_PICTURE, "\r"} & set(text))


def no_commands(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A description describes; it gives a model no orders beyond its own tool."""
    for place, text in texts_of(tool):
        if found := _COMMAND.search(text):
            yield Problem(
                field=place,
                message=f"The text commands the model: “{' '.join(found[0].split())[:60]}”.",
                fix="Say what the tool does and when it fits; scanners refuse servers whose texts give orders.",
            )
