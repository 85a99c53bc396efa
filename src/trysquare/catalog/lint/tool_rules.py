"""Lint rules for behaviour, sets of tools, prompts and resources."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from trysquare.catalog.descriptions import definition_tokens, is_positional
from trysquare.catalog.lint.base import LintOptions, Problem, each_tool, fields, rule, whole_toolset
from trysquare.catalog.search import ToolIndex
from trysquare.catalog.toolset import listed
from trysquare.core.json import choices_of, properties_of
from trysquare.core.metadata import FAMILY
from trysquare.core.prompts import Prompt
from trysquare.core.resources import Resource, ResourceTemplate
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset
from trysquare.search.tokenize import meaning, terms

_INSTEAD = re.compile(r"\b(?:use|instead|replaced by|call|superseded by|no replacement|without replacement)\b", re.I)


@rule("warning", each_tool, 'Declare it with consent=Consent(question="…"), which a model cannot answer itself.')
def destructive_asks(tool: Tool, options: LintOptions) -> Iterator[str]:
    """What cannot be undone is done with a person's consent."""
    metadata = tool.metadata
    asks = metadata.consent is not None or metadata.consent_literal is not None
    if metadata.destructive and not metadata.read_only and not asks:
        yield "The tool is destructive and does not ask for consent."


@rule("error", each_tool, "Leave out the one that is wrong.")
def hints_agree(tool: Tool, options: LintOptions) -> Iterator[str]:
    """A tool that only reads destroys nothing."""
    if tool.metadata.read_only and tool.metadata.destructive:
        yield "The tool is declared both read-only and destructive."


@rule("error", each_tool)
def consent_literal_used(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A consent text that is announced is also demanded by an argument."""
    literal = tool.metadata.consent_literal
    if literal is not None and not any(choices_of(node.schema) == [literal] for node in fields(tool.input_schema)):
        fix = f'Add an argument of type Literal["{literal}"], without a default.'
        yield Problem(f'No argument demands the consent text "{literal}".', fix)


@rule("error", each_tool)
def consent_question_fits(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A question names only arguments that there are."""
    known = properties_of(tool.input_schema)
    try:
        named = _braced(tool.metadata.consent.question) if tool.metadata.consent else []
    except ValueError:
        yield Problem("The consent question has a brace without its other half.", "Write {{ or }} to show a brace.")
        return
    for name in named:
        if name not in known:
            fix = f"The arguments are {', '.join(known) or 'none'}."
            yield Problem(f"The consent question names `{{{name}}}`, which is not an argument.", fix)


def _braced(question: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(question) if name is not None]


@rule("warning", whole_toolset, 'Name the replacement: deprecated="Use other_tool", or say that there is none.')
def deprecated_names_replacement(toolset: Toolset, options: LintOptions) -> Iterator[Problem]:
    """A deprecated tool says what to use instead."""
    names = {tool.name for tool in toolset.tools()}
    for tool in toolset.tools():
        text = tool.metadata.deprecated
        if text and not _INSTEAD.search(text) and not names & set(re.findall(r"[\w.-]+", text)):
            yield Problem("The tool is deprecated, and nothing says what to use instead.", tool=tool.name)


def _each_prompt(toolset: Toolset) -> Iterator[tuple[str, str | None, Prompt]]:
    return ((f"@{prompt.name}", None, prompt) for prompt in toolset.prompts())


@rule("error", _each_prompt)
def prompts_described(prompt: Prompt, options: LintOptions) -> Iterator[Problem]:
    """A prompt and each of its arguments say what they are. Counted arguments stand for `*args` and are not shown."""
    if not prompt.description.strip():
        yield Problem("The prompt has no description.", "Write a docstring that says what it asks for.")
    for argument in prompt.arguments:
        if not argument.description and not is_positional(argument):
            fix = "Add a line for it under `Args:` in the docstring."
            yield Problem("The argument has no description.", fix, field=argument.name)


def _each_resource(toolset: Toolset) -> Iterator[tuple[str, str | None, Resource | ResourceTemplate]]:
    yield from ((one.uri, None, one) for one in toolset.resources())
    yield from ((one.uri_template, None, one) for one in toolset.templates())


@rule("warning", _each_resource, "Write a docstring that says what is read there.")
def resources_described(resource: Resource | ResourceTemplate, options: LintOptions) -> Iterator[str]:
    """A resource says what is read there."""
    if not (resource.description or "").strip():
        yield "The resource has no description."


@rule("warning", whole_toolset, "Say in both what sets them apart (`use_when`, `avoid_when`), or make them one.")
def confusable_tools(toolset: Toolset, options: LintOptions) -> Iterator[Problem]:
    """Two tools differ in their descriptions, or by their place in a family."""
    tools = toolset.tools()
    index = ToolIndex(tools)
    known = {tool.name: tool for tool in tools}
    for tool in tools:
        # Each pair once: a tool is compared with those before it by name.
        for other in sorted(name for name in index.neighbours(tool.name) if name < tool.name):
            alike = index.similarity(tool.name, other)
            if alike >= options.confusable and not _have_places(tool, known[other]):
                yield Problem(f"The tool reads like `{other}` ({alike:.0%} alike).", tool=tool.name)


def _have_places(one: Tool, other: Tool) -> bool:
    """Whether two tools of one family differ by a word that stands in the name and in the description of each."""
    family = one.metadata.meta.get(FAMILY)
    if family is None or family != other.metadata.meta.get(FAMILY):
        return False
    return bool(_own_words(one, other)) and bool(_own_words(other, one))


def _own_words(tool: Tool, other: Tool) -> set[str]:
    # Synonyms do not distinguish tools.
    return (_meanings(tool.name) - _meanings(other.name)) & _meanings(tool.description)


def _meanings(text: str) -> set[str]:
    return {meaning(term) for term in terms(text)}


@rule("warning", whole_toolset)
def profile_budget(toolset: Toolset, options: LintOptions) -> Iterator[Problem]:
    """What is listed does not cost too many tokens in every conversation."""
    costs = {tool.name: definition_tokens(tool) for tool in listed(toolset, options.profiles)}
    total = sum(costs.values())
    if total > options.profile_tokens:
        largest = sorted(costs, key=lambda name: (-costs[name], name))[:3]
        yield Problem(
            message=f"The {len(costs)} listed tools cost about {total} tokens in each conversation; "
            f"{options.profile_tokens} is the limit.",
            fix=f"Choose a smaller profile, or shorten the largest: {', '.join(largest)}.",
        )


@rule("warning", whole_toolset, "Choose a smaller profile: --profile levels, or --profile search.")
def listed_count(toolset: Toolset, options: LintOptions) -> Iterator[str]:
    """No more tools are listed than clients take."""
    count = len(listed(toolset, options.profiles))
    if count > options.listed_tools:
        yield f"{count} tools are listed, and many clients take at most {options.listed_tools}."
