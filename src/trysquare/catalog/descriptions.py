"""Descriptions of tools and prompts: authored sections -> compact or full description, usage lines."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from trysquare.core.arguments import DISCRIMINATOR
from trysquare.core.consent import CONSENT_MARK, consent_warning
from trysquare.core.json import JsonObject, as_list, as_object, one_line_json, properties_of, required_of
from trysquare.core.metadata import UNPREFIXED, Example, ToolMetadata
from trysquare.core.prompts import Prompt, PromptArgument
from trysquare.core.schema.describe import type_text
from trysquare.core.tool import Tool

_HEADING = re.compile(
    r"^\s*#{2,6}\s+(Description|JSON Schema|Conceptual Schema|Usage(?: Instructions)?|(?:Concrete )?Examples?)\s*:?$",
    re.IGNORECASE | re.MULTILINE,
)
_PARTS = {"description": "description", "usage": "usage", "concrete": "examples", "example": "examples"}


@dataclass(frozen=True, kw_only=True, slots=True)
class AuthoredDescription:
    """The parts of a description. A schema section that was written by hand is left out: it is made from the schema."""

    description: str
    usage: str | None = None
    examples: str | None = None


def read_authored(text: str) -> AuthoredDescription:
    """Take a text apart at the headings of the four sections. A text without headings is all description."""
    # Most texts have no headings, and a list of a thousand tools asks for each.
    headings = list(_HEADING.finditer(text)) if "##" in text else []
    if not headings:
        return AuthoredDescription(description=text.strip())
    parts: dict[str, str] = {"description": text[: headings[0].start()].strip()}
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    for heading, end in zip(headings, ends, strict=True):
        part = next((part for start, part in _PARTS.items() if heading[1].lower().startswith(start)), None)
        if part is not None:
            parts[part] = f"{parts.get(part, '')}\n\n{text[heading.end() : end].strip()}".strip()
    return AuthoredDescription(
        description=parts["description"], usage=parts.get("usage") or None, examples=parts.get("examples") or None
    )


def usage_line(name: str, schema: JsonObject) -> str:
    """How a tool is called: `greet(name: string, tone: "warm" | "formal" = "warm")`."""
    properties = properties_of(schema)
    required = set(required_of(schema))
    ordered = sorted(properties.items(), key=lambda item: item[0] not in required)
    return f"{name}({', '.join(_parameter(key, part, key in required) for key, part in ordered)})"


def _parameter(name: str, schema: JsonObject, required: bool) -> str:
    if not required and "default" in schema:
        return f"{name}: {type_text(schema)} = {one_line_json(schema['default'])}"
    return f"{name}{'' if required else '?'}: {type_text(schema)}"


def example_arguments(schema: JsonObject) -> JsonObject | None:
    """Arguments made of the values that a schema names: its `examples`, choices and defaults.

    None if a required argument has no such value: an example with a placeholder teaches nothing.
    """
    properties = properties_of(schema)
    found = {name: _concrete(properties.get(name, {})) for name in required_of(schema)}
    return {name: value for name, (_, value) in found.items()} if all(known for known, _ in found.values()) else None


def _concrete(schema: JsonObject) -> tuple[bool, Any]:
    """Whether the schema names a value, and the value."""
    if "const" in schema:
        return True, schema["const"]
    for key in ("examples", "enum"):
        if values := as_list(schema.get(key)):
            return True, values[0]
    if "default" in schema:
        return True, schema["default"]
    kind = schema.get("type")
    if kind == "boolean":
        return True, True
    if kind == "array":
        known, value = _concrete(as_object(schema.get("items")))
        return known, [value]
    if kind == "object" and properties_of(schema):
        inner = example_arguments(schema)
        return inner is not None, inner
    options = (_concrete(as_object(option)) for option in as_list(schema.get("anyOf")))
    return next((found for found in options if found[0]), (False, None))


COMPACT_PURPOSE = 600
"""Characters of an author's text that a list shows; the rest is in the full description."""
_SEVERAL_WORDS = re.compile(r"\w[\s_-]+\w")
_POSITIONAL = re.compile(r"arg(?:\d+|[0-9A-F])")


def plain_name(tool: Tool) -> str:
    """The tool's name without a prefix: descriptions speak of a tool by the name that its author gave."""
    return str(tool.metadata.meta.get(UNPREFIXED, tool.name))


def compact_description(tool: Tool) -> str:
    """The description for a list: purpose, when to use it and when not, limits, one example. The schema is separate."""
    purpose = read_authored(tool.description).description
    if tool.metadata.verbatim:
        deprecated, warning = _warnings(purpose, tool)
        parts = [part for part in (deprecated, purpose, warning) if part]
    else:
        parts = _with_warnings(_shortened(purpose, COMPACT_PURPOSE), tool)
    return "\n".join([*parts, *_guidance(tool.metadata), *_compact_example(tool)])


def purpose_lines(tool: Tool) -> list[str]:
    """The purpose in one line, with the warnings."""
    head = _paragraphs(read_authored(tool.description).description)[:1]
    return _with_warnings("".join(head), tool)


def full_description(tool: Tool) -> str:
    """The description in its four sections: Description, JSON Schema, Usage Instructions, Concrete Examples."""
    authored = read_authored(tool.description)
    about = [*_with_warnings(authored.description, tool), *_guidance(tool.metadata)]
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


def _with_warnings(text: str, tool: Tool) -> list[str]:
    """A text with its warnings: deprecation before it, consent after its first line, which clients show alone."""
    head, *rest = _paragraphs(text) or [""]
    deprecated, warning = _warnings(text, tool)
    return [part for part in (deprecated, head, warning, *rest) if part]


def _warnings(text: str, tool: Tool) -> tuple[str, str]:
    """What to say of deprecation and of consent; empty where there is nothing to say."""
    metadata = tool.metadata
    if metadata.consent_literal is None and (literal := _literal_of(tool)) is not None:
        metadata = replace(metadata, consent_literal=literal)
    deprecated = f"DEPRECATED: {_ended(metadata.deprecated)}" if metadata.deprecated else ""
    # An author who wrote the mark also wrote the warning, in words of their own.
    return deprecated, "" if CONSENT_MARK in text else consent_warning(metadata) or ""


def _literal_of(tool: Tool) -> str | None:
    """The only text that a required argument may hold, such as `CREATE_DOCUMENT`, which a caller types as consent.

    A single word in small letters (`kind: Literal["invoice"]`) says what something is and asks nobody.
    """
    if tool.function is None:
        return None
    schema = tool.input_schema
    values = [_only_value(properties_of(schema).get(name, {})) for name in required_of(schema) if name != DISCRIMINATOR]
    typed = (value for value in values if isinstance(value, str))
    return next((text for text in typed if text.isupper() or _SEVERAL_WORDS.search(text)), None)


def _only_value(schema: JsonObject) -> Any:
    choices = as_list(schema.get("enum"))
    return schema.get("const", choices[0] if len(choices) == 1 else None)


def _paragraphs(text: str) -> list[str]:
    """The first line, and what follows it."""
    head, _, rest = text.strip().partition("\n")
    return [part for part in (head.strip(), rest.strip()) if part]


def _guidance(metadata: ToolMetadata) -> list[str]:
    parts = (("Use when", metadata.use_when), ("Not for", metadata.avoid_when), ("Limits", metadata.limits))
    return [f"{label}: {_ended(text)}" for label, text in parts if text]


def _ended(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", "…", ":", "`")) else text + "."


def _shortened(text: str, limit: int) -> str:
    """Whole paragraphs, or whole sentences of the first one, as far as they fit. A consent warning stays whole."""
    if len(text) <= limit:
        return text
    paragraphs = text.split("\n\n")
    fitting = [paragraphs[0] if len(paragraphs[0]) <= limit else _whole_sentences(paragraphs[0], limit)]
    for paragraph in paragraphs[1:]:
        if CONSENT_MARK in paragraph or len("\n\n".join([*fitting, paragraph])) <= limit:
            fitting.append(paragraph)
    return "\n\n".join(fitting)


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


def _usage(tool: Tool, authored: AuthoredDescription) -> str:
    line = _fenced("text", usage_line(plain_name(tool), tool.input_schema))
    usage = tool.metadata.usage or authored.usage
    if usage is None:
        return line
    return usage if "```" in usage else f"{line}\n\n{_fenced('text', usage)}"


def _examples(tool: Tool, authored: AuthoredDescription) -> str:
    if tool.metadata.examples:
        return "\n\n".join(_example(plain_name(tool), example) for example in tool.metadata.examples)
    if authored.examples:
        return _with_fence(authored.examples)
    arguments = example_arguments(tool.input_schema)
    if arguments is None:
        return "None were written, and the schema names no concrete values to make one of."
    explanation = "A call with values that the schema names." if arguments else "A call without arguments."
    return _example(plain_name(tool), Example(arguments=arguments, explanation=explanation))


def _with_fence(text: str) -> str:
    return text if "```" in text else _fenced("text", text)


def _example(name: str, example: Example) -> str:
    body = json.dumps({"name": name, "arguments": example.arguments}, ensure_ascii=False)
    return f"{_ended(example.explanation)}\n\n{_fenced('json', body)}"


def _conceptual_schema(prompt: Prompt) -> str:
    shown = [argument for argument in prompt.arguments if not is_positional(argument)]
    hidden = len(shown) < len(prompt.arguments)
    names = [one.name if one.required else f"{one.name}?" for one in shown]
    signature = ", ".join([*names, *(["*args"] if hidden else [])])
    lines = [f"{prompt.name}({signature})"]
    lines.extend(f"  {argument.name}: {argument.description}" for argument in shown if argument.description)
    if hidden:
        lines.append("  *args: any number of words, in order")
    return "\n".join(lines)


def is_positional(argument: PromptArgument) -> bool:
    """Whether an argument is one of the counted ones (`arg1` … `argF`) that stand for `*args`."""
    return _POSITIONAL.fullmatch(argument.name) is not None


def _invocation(prompt: Prompt) -> str:
    shown = [f"<{one.name}>" if one.required else f"[{one.name}]" for one in prompt.arguments if not is_positional(one)]
    hidden = ["[args...]"] if any(is_positional(one) for one in prompt.arguments) else []
    return " ".join([f"@{prompt.name}", *shown, *hidden])


def _prompt_examples(prompt: Prompt, authored: AuthoredDescription) -> str:
    if prompt.examples:
        return "\n\n".join(f"{_ended(text)}\n\n{_fenced('text', call)}" for call, text in prompt.examples)
    if authored.examples:
        return _with_fence(authored.examples)
    if prompt.arguments:
        return "None were written."
    return f"Asks for the prompt.\n\n{_fenced('text', '@' + prompt.name)}"


def definition(tool: Tool) -> JsonObject:
    """Return a tool as a listing shows it to a model."""
    return {"name": tool.name, "description": compact_description(tool), "input_schema": tool.input_schema}


def definition_tokens(tool: Tool) -> int:
    """Estimate the tokens of a tool in each conversation that lists it."""
    # Imported here: serving counts no tokens.
    from trysquare.core.tokens import count_tokens

    return count_tokens(one_line_json(definition(tool)))
