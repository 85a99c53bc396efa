"""Descriptions: one authored source, and what is shown of it in a list, on demand, and in the narrowest place."""

from __future__ import annotations

import json
import re

from trysquare.catalog.authored import Authored, read_authored
from trysquare.catalog.schema_examples import example_arguments, usage_line
from trysquare.catalog.schema_parts import one_line_json
from trysquare.core.consent_text import CONSENT_MARK, consent_warning
from trysquare.core.metadata import UNPREFIXED, Example, ToolMetadata
from trysquare.core.prompt import Prompt, PromptArgument
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

COMPACT_PURPOSE = 600
"""Characters of an author's text that a list shows; the rest is in the full description."""
_POSITIONAL = re.compile(r"arg(?:\d+|[0-9A-F])")


def plain_name(tool: Tool) -> str:
    """The tool's name without a prefix: descriptions speak of a tool by the name that its author gave."""
    return str(tool.metadata.meta.get(UNPREFIXED, tool.name))


def compact_description(tool: Tool) -> str:
    """The description for a list: purpose, when to use it and when not, limits, one example.

    The arguments are not told again, because the schema that stands beside it tells them.
    """
    purpose = _shortened(read_authored(tool.description).description, COMPACT_PURPOSE)
    told = _with_warnings(purpose, tool.metadata)
    return "\n".join([*told, *_guidance(tool.metadata), *_compact_example(tool)])


def name_only_description(tool: Tool) -> str:
    """The description where there is no room for one: nothing, except what a person must not miss."""
    return "\n".join(_with_warnings("", tool.metadata))


def purpose_lines(tool: Tool) -> list[str]:
    """The purpose in one line, between what a person must not miss."""
    head = _paragraphs(read_authored(tool.description).description)[:1]
    return _with_warnings("".join(head), tool.metadata)


def full_description(tool: Tool) -> str:
    """The description in its four sections: Description, JSON Schema, Usage Instructions, Concrete Examples."""
    authored = read_authored(tool.description)
    about = [*_with_warnings(authored.description, tool.metadata), *_guidance(tool.metadata)]
    return _sections(
        plain_name(tool),
        ("Description", "\n\n".join(about)),
        ("JSON Schema", _fenced("json", json.dumps(tool.input_schema, indent=2, ensure_ascii=False))),
        ("Usage Instructions", _usage(tool, authored)),
        ("Concrete Examples", _examples(tool, authored)),
    )


def prompt_description(prompt: Prompt) -> str:
    """A prompt's description in its four sections, with `*args` where the implementation counts its arguments."""
    authored = read_authored(prompt.description)
    return _sections(
        prompt.name,
        ("Description", "\n\n".join(_paragraphs(authored.description))),
        ("Conceptual Schema", _fenced("text", _conceptual_schema(prompt))),
        ("Usage Instructions", authored.usage or _fenced("text", _invocation(prompt))),
        ("Concrete Examples", _prompt_examples(prompt, authored)),
    )


def _with_warnings(text: str, metadata: ToolMetadata) -> list[str]:
    """A text with what a person must not miss: deprecation before it, consent after its first line.

    The first line stays the purpose, because clients show it alone.
    """
    head, *rest = _paragraphs(text) or [""]
    deprecated = f"DEPRECATED: {_ended(metadata.deprecated)}" if metadata.deprecated else ""
    # An author who wrote the mark also wrote the warning, in words of their own.
    warning = "" if CONSENT_MARK in text else consent_warning(metadata) or ""
    return [part for part in (deprecated, head, warning, *rest) if part]


def _paragraphs(text: str) -> list[str]:
    """The first line, and what follows it."""
    head, _, rest = text.strip().partition("\n")
    return [part for part in (head.strip(), rest.strip()) if part]


def _guidance(metadata: ToolMetadata) -> list[str]:
    told = (("Use when", metadata.use_when), ("Not for", metadata.avoid_when), ("Limits", metadata.limits))
    return [f"{label}: {_ended(text)}" for label, text in told if text]


def _ended(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…", ":", "`")) else text + "."


def _shortened(text: str, limit: int) -> str:
    """Whole paragraphs, or whole sentences of the first one, as far as they fit. A consent warning stays whole."""
    if len(text) <= limit:
        return text
    paragraphs = text.split("\n\n")
    kept = [paragraphs[0] if len(paragraphs[0]) <= limit else _whole_sentences(paragraphs[0], limit)]
    for paragraph in paragraphs[1:]:
        if CONSENT_MARK in paragraph or len("\n\n".join([*kept, paragraph])) <= limit:
            kept.append(paragraph)
    return "\n\n".join(kept)


def _whole_sentences(text: str, limit: int) -> str:
    if CONSENT_MARK in text:
        return text
    ends = [found.end() for found in re.finditer(r"[.!?](?=\s)", text) if found.end() <= limit]
    return text[: ends[-1]] if ends else text[: limit - 1].rstrip() + "…"


def _compact_example(tool: Tool) -> list[str]:
    if not tool.metadata.examples:
        return []
    first = tool.metadata.examples[0]
    explanation = f" ({first.explanation.strip().rstrip('.')})" if first.explanation.strip() else ""
    return [f"Example: {one_line_json(first.arguments)}{explanation}"]


def _sections(name: str, *sections: tuple[str, str]) -> str:
    return f"# {name}\n\n" + "\n\n".join(f"## {title}\n\n{body or 'None.'}" for title, body in sections) + "\n"


def _fenced(kind: str, body: str) -> str:
    fence = "```"
    while fence in body:
        fence += "`"
    return f"{fence}{kind}\n{body}\n{fence}"


def _usage(tool: Tool, authored: Authored) -> str:
    line = _fenced("text", usage_line(plain_name(tool), tool.input_schema))
    told = tool.metadata.usage or authored.usage
    if told is None:
        return line
    return told if "```" in told else f"{line}\n\n{_fenced('text', told)}"


def _examples(tool: Tool, authored: Authored) -> str:
    if tool.metadata.examples:
        return "\n\n".join(_example(plain_name(tool), example) for example in tool.metadata.examples)
    if authored.examples:
        return authored.examples if "```" in authored.examples else _fenced("text", authored.examples)
    arguments = example_arguments(tool.input_schema)
    if arguments is None:
        return "None were written, and the schema names no concrete values to make one of."
    return _example(plain_name(tool), Example(arguments=arguments, explanation=_made_explanation(arguments)))


def _made_explanation(arguments: JsonObject) -> str:
    return "A call with values that the schema names." if arguments else "A call without arguments."


def _example(name: str, example: Example) -> str:
    body = json.dumps({"name": name, "arguments": example.arguments}, ensure_ascii=False)
    return f"{_ended(example.explanation)}\n\n{_fenced('json', body)}"


def _conceptual_schema(prompt: Prompt) -> str:
    shown = [argument for argument in prompt.arguments if not is_positional(argument)]
    hidden = len(shown) < len(prompt.arguments)
    signature = ", ".join([*(_parameter(argument) for argument in shown), *(["*args"] if hidden else [])])
    lines = [f"{prompt.name}({signature})"]
    lines.extend(f"  {argument.name}: {argument.description}" for argument in shown if argument.description)
    if hidden:
        lines.append("  *args: any number of words, in order")
    return "\n".join(lines)


def _parameter(argument: PromptArgument) -> str:
    return argument.name if argument.required else f"{argument.name}?"


def is_positional(argument: PromptArgument) -> bool:
    """Whether an argument is one of the counted ones (`arg1` … `argF`) that stand for `*args`."""
    return _POSITIONAL.fullmatch(argument.name) is not None


def _invocation(prompt: Prompt) -> str:
    shown = [f"<{one.name}>" if one.required else f"[{one.name}]" for one in prompt.arguments if not is_positional(one)]
    hidden = ["[args...]"] if any(is_positional(one) for one in prompt.arguments) else []
    return " ".join([f"@{prompt.name}", *shown, *hidden])


def _prompt_examples(prompt: Prompt, authored: Authored) -> str:
    if prompt.examples:
        return "\n\n".join(f"{_ended(text)}\n\n{_fenced('text', call)}" for call, text in prompt.examples)
    if authored.examples:
        return authored.examples if "```" in authored.examples else _fenced("text", authored.examples)
    if prompt.arguments:
        return "None were written."
    return f"Asks for the prompt.\n\n{_fenced('text', '@' + prompt.name)}"
