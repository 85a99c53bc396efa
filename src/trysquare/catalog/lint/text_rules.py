"""Lint rules for names, descriptions, examples and hidden text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, cast

from trysquare.catalog.descriptions import compact_description, definition_tokens, read_authored
from trysquare.catalog.lint.base import LintOptions, Problem, fields, nodes, tool_rule, toolset_rule
from trysquare.core.errors import InvalidArguments
from trysquare.core.json import JsonObject, properties_of
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset
from trysquare.core.untrusted import hidden_characters
from trysquare.search.tokenize import split_words, terms

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


@tool_rule("error")
def no_hidden_characters(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A person who reads a text sees all that a model reads."""
    for place, text in texts_of(tool):
        hidden = sorted(f"U+{ord(char):04X}" for char in _hidden_in(text))
        if hidden:
            yield Problem(
                f"The text holds characters that nobody sees: {', '.join(hidden[:5])}.",
                "Remove them; text that only a model can read is how tools are poisoned.",
                field=place,
            )


def _hidden_in(text: str) -> set[str]:
    """What cannot be seen, and what a description of one's own has no use for: private and unassigned characters."""
    odd = {char for char in set(text) if unicodedata.category(char) in ("Co", "Cn", "Cs", "Zl", "Zp")}
    return hidden_characters(text) | odd | ({_BLANK_PICTURE, "\r"} & set(text))


@tool_rule("error")
def no_commands(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A description describes; it gives a model no orders beyond its own tool."""
    for place, text in texts_of(tool):
        if found := _COMMAND.search(text):
            yield Problem(
                f"The text commands the model: “{' '.join(found[0].split())[:60]}”.",
                "Say what the tool does and when it fits; scanners refuse servers whose texts give orders.",
                field=place,
            )


_WHEN = re.compile(
    r"\b(?:use (?:this|it|when|for|to|after|before|if)|when(?:ever)?|only if|instead of|before|after)\b", re.I
)
_PLACEHOLDER = re.compile(
    r"\bTODO\b|\bFIXME\b|\bTBD\b|\bXXX\b|lorem ipsum|\b(?:description|text|summary) (?:goes )?here\b|\bplaceholder\b"
    r"|\binsert \w+ here\b|\bto be (?:written|documented|described|defined)\b",
    re.IGNORECASE,
)
_RETOLD = re.compile(r"^\s*(?:Args|Arguments|Parameters|Params|Inputs?):", re.IGNORECASE | re.MULTILINE)


@tool_rule("error")
def description_present(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A tool says what it does."""
    if not read_authored(tool.description).description:
        yield Problem("The tool has no description.", "Write a docstring that says what it does.")


@tool_rule("advice")
def short_first_line(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """The first line says it all, because many clients show no more."""
    first = read_authored(tool.description).description.partition("\n")[0]
    if len(first) > options.first_line:
        yield Problem(
            f"The first line has {len(first)} characters; {options.first_line} is the limit.",
            "Say what the tool does in one short line, and the rest after an empty one.",
        )


@tool_rule("warning")
def says_more_than_name(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A description tells more than the name does."""
    text = set(terms(read_authored(tool.description).description))
    if text and text <= set(terms(tool.name)):
        yield Problem(
            "The description only repeats the tool's name.",
            "Say what it acts on, what it returns, and what it does not do.",
        )


@tool_rule("advice")
def says_when(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A tool says when to choose it, or which words call for it."""
    text = read_authored(tool.description).description
    said = tool.metadata.use_when or tool.metadata.trigger_words
    if text and not said and not _WHEN.search(text):
        yield Problem("Nothing says when to use the tool.", 'Declare it with use_when="…".')


@tool_rule("error")
def no_placeholders(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """No text waits to be written."""
    for place, text in texts_of(tool):
        if found := _PLACEHOLDER.search(text):
            yield Problem(f"`{found[0]}` is a placeholder.", "Write the real text.", field=place)


@tool_rule("warning")
def description_length(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A listed description is short: some clients cut it, and every conversation pays for it."""
    length = max(len(compact_description(tool)), len(read_authored(tool.description).description))
    if length > options.description_characters:
        yield Problem(
            f"The description has {length} characters; {options.description_characters} is the limit.",
            "Keep the purpose, and move details to `usage`, which is shown on demand.",
        )


@tool_rule("warning")
def tool_budget(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A tool does not cost too many tokens in every conversation."""
    tokens = definition_tokens(tool)
    if tokens > options.tool_tokens:
        yield Problem(
            f"The tool costs about {tokens} tokens in each conversation; {options.tool_tokens} is the limit.",
            "Shorten its descriptions and schema, or split it.",
        )


@tool_rule("advice")
def arguments_told_once(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """The arguments stand in the schema and are not repeated."""
    text = read_authored(tool.description).description
    names = properties_of(tool.input_schema)
    listed = [name for name in names if re.search(rf"^\s*[-*]\s+`?{re.escape(name)}`?\s*[:(]", text, re.MULTILINE)]
    if _RETOLD.search(text) or len(listed) > 1:
        yield Problem(
            "The description lists the arguments, which the schema beside it does already.",
            "Move what it says to the fields' own descriptions.",
        )


_MANY = 5
_PLACEHOLDER_EXAMPLES = re.compile(
    r"<[^<>]+>|\[[A-Z_ ]+\]|\{[a-z_]+\}|\.{3}|…|(?:your|some|my)[-_ ]\w+|foo|bar|baz|string|value|xxx+", re.I
)


@tool_rule("warning")
def examples_for_complex(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A schema that is not plain comes with an example."""
    if tool.metadata.examples or read_authored(tool.description).examples:
        return
    top = properties_of(tool.input_schema)
    nested = any(node.depth > 1 for node in fields(tool.input_schema))
    if nested or len(top) >= _MANY:
        why = "nested arguments" if nested else f"{len(top)} arguments"
        yield Problem(
            f"The tool has {why} and no example.", "Declare it with examples=(Example(arguments={…}, explanation=…),)."
        )


@tool_rule("error")
def examples_fit(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """An example is a call that the tool accepts."""
    for number, example in enumerate(tool.metadata.examples, start=1):
        try:
            tool.arguments.parse(tool.name, example.arguments)
        except InvalidArguments as error:
            yield Problem(
                f"The tool refuses its own example: {error.message}",
                "Correct the example.",
                field=f"examples[{number}]",
            )


@tool_rule("warning")
def examples_concrete(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """An example has values that could be real."""
    for number, example in enumerate(tool.metadata.examples, start=1):
        found = next(
            (text for text in _texts(example.arguments) if _PLACEHOLDER_EXAMPLES.fullmatch(text.strip())), None
        )
        if found is not None:
            yield Problem(
                f"`{found}` is a placeholder.", "Use a value that a real call could have.", field=f"examples[{number}]"
            )


@tool_rule("advice")
def examples_explained(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """An example says what it shows."""
    for number, example in enumerate(tool.metadata.examples, start=1):
        if not example.explanation.strip():
            yield Problem(
                "Nothing says what the example shows.",
                "Write an explanation of a few words.",
                field=f"examples[{number}]",
            )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in cast(JsonObject, value).values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in cast(list[Any], value):
            yield from _texts(part)


_SNAKE = re.compile(r"[a-z][a-z0-9]*(?:_+[a-z0-9]+)*")


@tool_rule("warning")
def name_style(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Names are lower case with underscores, so that nobody has to guess how one is written."""
    if not _SNAKE.fullmatch(tool.name):
        instead = "_".join(split_words(tool.name)) or "a_name"
        yield Problem("The name is not in snake_case.", f"Call it `{instead}`.")


@tool_rule("warning")
def name_length(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Names leave space for a client's prefix: the whole may have 64 characters."""
    if len(tool.name) > options.name_length:
        yield Problem(
            f"The name has {len(tool.name)} characters; {options.name_length} is the limit.",
            "Shorten it: clients put the server's name in front, and refuse more than 64 in all.",
        )


@toolset_rule("error")
def distinct_names(toolset: Toolset, options: LintOptions) -> Iterator[Problem]:
    """Two names differ by more than their spelling."""
    first: dict[str, str] = {}
    for tool in toolset.tools():
        folded = "".join(split_words(tool.name))
        if folded in first:
            yield Problem(
                f"The name differs from `{first[folded]}` only in how it is written.",
                "Give one of them another name.",
                tool=tool.name,
            )
        first.setdefault(folded, tool.name)
