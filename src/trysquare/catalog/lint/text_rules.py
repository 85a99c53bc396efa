"""Lint rules for names, descriptions, examples and hidden text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, cast

from trysquare.catalog.descriptions import compact_description, definition_tokens, read_authored
from trysquare.catalog.lint.base import LintOptions, Problem, each_tool, fields, nodes, rule, whole_toolset
from trysquare.core.errors import InvalidArguments
from trysquare.core.json import JsonObject, properties_of
from trysquare.core.metadata import Example
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


def _each_text(toolset: Toolset) -> Iterator[tuple[str, str | None, str]]:
    return ((tool.name, place, text) for tool in toolset.tools() for place, text in _texts_of(tool))


def _texts_of(tool: Tool) -> Iterator[tuple[str | None, str]]:
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


@rule("error", _each_text, "Remove them; text that only a model can read is how tools are poisoned.")
def no_hidden_characters(text: str, options: LintOptions) -> Iterator[str]:
    """A person who reads a text sees all that a model reads."""
    # Private and unassigned characters can be seen, but a description of one's own has no use for them.
    odd = {char for char in set(text) if unicodedata.category(char) in ("Co", "Cn", "Cs", "Zl", "Zp")}
    found = hidden_characters(text) | odd | ({_BLANK_PICTURE, "\r"} & set(text))
    if hidden := sorted(f"U+{ord(char):04X}" for char in found):
        yield f"The text contains invisible characters: {', '.join(hidden[:5])}."


@rule("error", _each_text, "Say what the tool does and when it fits; scanners refuse servers whose texts give orders.")
def no_commands(text: str, options: LintOptions) -> Iterator[str]:
    """A description describes; it gives a model no orders beyond its own tool."""
    if found := _COMMAND.search(text):
        yield f"The text commands the model: “{' '.join(found[0].split())[:60]}”."


_WHEN = re.compile(
    r"\b(?:use (?:this|it|when|for|to|after|before|if)|when(?:ever)?|only if|instead of|before|after)\b", re.I
)
_PLACEHOLDER = re.compile(
    r"\bTODO\b|\bFIXME\b|\bTBD\b|\bXXX\b|lorem ipsum|\b(?:description|text|summary) (?:goes )?here\b|\bplaceholder\b"
    r"|\binsert \w+ here\b|\bto be (?:written|documented|described|defined)\b",
    re.IGNORECASE,
)
_RETOLD = re.compile(r"^\s*(?:Args|Arguments|Parameters|Params|Inputs?):", re.IGNORECASE | re.MULTILINE)


@rule("error", each_tool, "Write a docstring that says what it does.")
def description_present(tool: Tool, options: LintOptions) -> Iterator[str]:
    """A tool says what it does."""
    if not read_authored(tool.description).description:
        yield "The tool has no description."


@rule("advice", each_tool, "Say what the tool does in one short line, and the rest after an empty one.")
def short_first_line(tool: Tool, options: LintOptions) -> Iterator[str]:
    """The first line says it all, because many clients show no more."""
    first = read_authored(tool.description).description.partition("\n")[0]
    if len(first) > options.first_line:
        yield f"The first line has {len(first)} characters; {options.first_line} is the limit."


@rule("warning", each_tool, "Say what it acts on, what it returns, and what it does not do.")
def says_more_than_name(tool: Tool, options: LintOptions) -> Iterator[str]:
    """A description tells more than the name does."""
    text = set(terms(read_authored(tool.description).description))
    if text and text <= set(terms(tool.name)):
        yield "The description only repeats the tool's name."


def _each_of_several(toolset: Toolset) -> Iterator[tuple[str, str | None, Tool]]:
    """Every tool, where a model has more than one to choose from."""
    return each_tool(toolset) if len(toolset.tools()) > 1 else iter(())


@rule("advice", _each_of_several, 'Declare it with use_when="…".')
def says_when(tool: Tool, options: LintOptions) -> Iterator[str]:
    """A tool says when to choose it, or which words call for it."""
    text = read_authored(tool.description).description
    said = tool.metadata.use_when or tool.metadata.trigger_words
    if text and not said and not _WHEN.search(text):
        yield "Nothing says when to use the tool."


@rule("error", _each_text, "Write the real text.")
def no_placeholders(text: str, options: LintOptions) -> Iterator[str]:
    """No text waits to be written."""
    if found := _PLACEHOLDER.search(text):
        yield f"`{found[0]}` is a placeholder."


@rule("warning", each_tool, "Keep the purpose, and move details to `usage`, which is shown on demand.")
def description_length(tool: Tool, options: LintOptions) -> Iterator[str]:
    """A listed description is short: some clients cut it, and every conversation pays for it."""
    length = max(len(compact_description(tool)), len(read_authored(tool.description).description))
    if length > options.description_characters:
        yield f"The description has {length} characters; {options.description_characters} is the limit."


@rule("warning", each_tool, "Shorten its descriptions and schema, or split it.")
def tool_budget(tool: Tool, options: LintOptions) -> Iterator[str]:
    """A tool does not cost too many tokens in every conversation."""
    tokens = definition_tokens(tool)
    if tokens > options.tool_tokens:
        yield f"The tool costs about {tokens} tokens in each conversation; {options.tool_tokens} is the limit."


@rule("advice", each_tool, "Move what it says to the fields' own descriptions.")
def arguments_told_once(tool: Tool, options: LintOptions) -> Iterator[str]:
    """The arguments stand in the schema and are not repeated."""
    text = read_authored(tool.description).description
    names = properties_of(tool.input_schema)
    listed = [name for name in names if re.search(rf"^\s*[-*]\s+`?{re.escape(name)}`?\s*[:(]", text, re.MULTILINE)]
    if _RETOLD.search(text) or len(listed) > 1:
        yield "The description lists the arguments, which the schema beside it does already."


_MANY = 5
_PLACEHOLDER_EXAMPLES = re.compile(
    r"<[^<>]+>|\[[A-Z_ ]+\]|\{[a-z_]+\}|\.{3}|…|(?:your|some|my)[-_ ]\w+|foo|bar|baz|string|value|xxx+", re.I
)


def _each_example(toolset: Toolset) -> Iterator[tuple[str, str | None, tuple[Tool, Example]]]:
    for tool in toolset.tools():
        for number, example in enumerate(tool.metadata.examples, start=1):
            yield tool.name, f"examples[{number}]", (tool, example)


@rule("warning", each_tool, "Declare it with examples=(Example(arguments={…}, explanation=…),).")
def examples_for_complex(tool: Tool, options: LintOptions) -> Iterator[str]:
    """A schema that is not plain comes with an example."""
    if tool.metadata.examples or read_authored(tool.description).examples:
        return
    top = properties_of(tool.input_schema)
    nested = any(node.depth > 1 for node in fields(tool.input_schema))
    if nested or len(top) >= _MANY:
        why = "nested arguments" if nested else f"{len(top)} arguments"
        yield f"The tool has {why} and no example."


@rule("error", _each_example, "Correct the example.")
def examples_fit(shown: tuple[Tool, Example], options: LintOptions) -> Iterator[str]:
    """An example is a call that the tool accepts."""
    tool, example = shown
    try:
        tool.arguments.parse(tool.name, example.arguments)
    except InvalidArguments as error:
        yield f"The tool refuses its own example: {error.message}"


@rule("warning", _each_example, "Use a value that a real call could have.")
def examples_concrete(shown: tuple[Tool, Example], options: LintOptions) -> Iterator[str]:
    """An example has values that could be real."""
    texts = (text for text in _texts(shown[1].arguments) if _PLACEHOLDER_EXAMPLES.fullmatch(text.strip()))
    if (found := next(texts, None)) is not None:
        yield f"`{found}` is a placeholder."


@rule("advice", _each_example, "Write an explanation of a few words.")
def examples_explained(shown: tuple[Tool, Example], options: LintOptions) -> Iterator[str]:
    """An example says what it shows."""
    if not shown[1].explanation.strip():
        yield "Nothing says what the example shows."


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


@rule("warning", each_tool)
def name_style(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """Names are lower case with underscores, so that nobody has to guess how one is written."""
    if not _SNAKE.fullmatch(tool.name):
        instead = "_".join(split_words(tool.name)) or "a_name"
        yield Problem("The name is not in snake_case.", f"Call it `{instead}`.")


@rule("warning", each_tool, "Shorten it: clients put the server's name in front, and refuse more than 64 in all.")
def name_length(tool: Tool, options: LintOptions) -> Iterator[str]:
    """Names leave space for a client's prefix: the whole may have 64 characters."""
    if len(tool.name) > options.name_length:
        yield f"The name has {len(tool.name)} characters; {options.name_length} is the limit."


@rule("error", whole_toolset, "Give one of them another name.")
def distinct_names(toolset: Toolset, options: LintOptions) -> Iterator[Problem]:
    """Two names differ by more than their spelling."""
    first: dict[str, str] = {}
    for tool in toolset.tools():
        known = first.setdefault("".join(split_words(tool.name)), tool.name)
        if known != tool.name:
            yield Problem(f"The name differs from `{known}` only in how it is written.", tool=tool.name)
