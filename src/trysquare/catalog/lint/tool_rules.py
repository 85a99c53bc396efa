"""Lint rules for behaviour, sets of tools, prompts and resources."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from trysquare.catalog.descriptions import definition_tokens, is_positional
from trysquare.catalog.lint.base import LintOptions, Problem, fields, tool_rule, toolset_rule
from trysquare.catalog.search import ToolIndex
from trysquare.catalog.toolset import listed
from trysquare.core.json import properties_of
from trysquare.core.metadata import FAMILY
from trysquare.core.tool import Tool
from trysquare.core.toolset import Toolset
from trysquare.search.tokenize import meaning, terms

_INSTEAD = re.compile(r"\b(?:use|instead|replaced by|call|superseded by|no replacement|without replacement)\b", re.I)


@tool_rule("warning")
def destructive_asks(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """What cannot be undone is done with a person's consent."""
    metadata = tool.metadata
    if (
        metadata.destructive
        and not metadata.read_only
        and metadata.consent is None
        and metadata.consent_literal is None
    ):
        yield Problem(
            "The tool is destructive and asks nobody.",
            'Declare it with consent=Consent(question="…"), which a model cannot answer itself.',
        )


@tool_rule("error")
def hints_agree(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A tool that only reads destroys nothing."""
    if tool.metadata.read_only and tool.metadata.destructive:
        yield Problem("The tool is declared both read-only and destructive.", "Leave out the one that is wrong.")


@tool_rule("error")
def consent_literal_used(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A consent text that is announced is also demanded by an argument."""
    literal = tool.metadata.consent_literal
    schemas = [node.keywords for node in fields(tool.input_schema)]
    if literal is None or any(one.get("const") == literal or one.get("enum") == [literal] for one in schemas):
        return
    yield Problem(
        f'No argument demands the consent text "{literal}".',
        f'Add an argument of type Literal["{literal}"], without a default.',
    )


@tool_rule("error")
def consent_question_fits(tool: Tool, options: LintOptions) -> Iterator[Problem]:
    """A question names only arguments that there are."""
    if tool.metadata.consent is None:
        return
    known = properties_of(tool.input_schema)
    for name in _braced(tool.metadata.consent.question):
        if name not in known:
            yield Problem(
                f"The consent question names `{{{name}}}`, which is no argument.",
                f"The arguments are {', '.join(known) or 'none'}.",
            )


def _braced(question: str) -> list[str]:
    try:
        parts = [name for _, name, _, _ in string.Formatter().parse(question) if name is not None]
    except ValueError:
        return ["unbalanced braces"]
    return [re.split(r"[.\[]", name)[0] for name in parts]


@toolset_rule("warning")
def deprecated_names_replacement(toolset: Toolset, options: LintOptions) -> Iterator[Problem]:
    """A deprecated tool says what to use instead."""
    names = {tool.name for tool in toolset.tools()}
    for tool in toolset.tools():
        text = tool.metadata.deprecated
        if text and not _INSTEAD.search(text) and not names & set(re.findall(r"[\w.-]+", text)):
            yield Problem(
                "The tool is deprecated, and nothing says what to use instead.",
                'Name the replacement: deprecated="Use other_tool", or say that there is none.',
                tool=tool.name,
            )


@toolset_rule("error")
def prompts_described(toolset: Toolset, options: LintOptions) -> Iterator[Problem]:
    """A prompt and each of its arguments say what they are. Counted arguments stand for `*args` and are not shown."""
    for prompt in toolset.prompts():
        if not prompt.description.strip():
            yield Problem(
                "The prompt has no description.",
                "Write a docstring that says what it asks for.",
                tool=f"@{prompt.name}",
            )
        for argument in prompt.arguments:
            if not argument.description and not is_positional(argument):
                yield Problem(
                    "The argument has no description.",
                    "Add a line for it under `Args:` in the docstring.",
                    field=argument.name,
                    tool=f"@{prompt.name}",
                )


@toolset_rule("warning")
def resources_described(toolset: Toolset, options: LintOptions) -> Iterator[Problem]:
    """A resource says what is read there."""
    described = [(one.uri, one.description) for one in toolset.resources()]
    described += [(one.uri_template, one.description) for one in toolset.templates()]
    for uri, description in described:
        if not (description or "").strip():
            yield Problem(
                "The resource has no description.", "Write a docstring that says what is read there.", tool=uri
            )


@toolset_rule("warning")
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
                yield Problem(
                    f"The tool reads like `{other}` ({alike:.0%} alike).",
                    "Say in both what sets them apart (`use_when`, `avoid_when`), or make them one.",
                    tool=tool.name,
                )


def _have_places(one: Tool, other: Tool) -> bool:
    """Whether two tools of one family differ by a word that stands in the name and in the description of each."""
    family = one.metadata.meta.get(FAMILY)
    if family is None or family != other.metadata.meta.get(FAMILY):
        return False
    return bool(_own_words(one, other)) and bool(_own_words(other, one))


def _own_words(tool: Tool, other: Tool) -> set[str]:
    # Words of one meaning tell nothing apart.
    return (_meanings(tool.name) - _meanings(other.name)) & _meanings(tool.description)


def _meanings(text: str) -> set[str]:
    return {meaning(term) for term in terms(text)}


@toolset_rule("warning")
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


@toolset_rule("warning")
def listed_count(toolset: Toolset, options: LintOptions) -> Iterator[Problem]:
    """No more tools are listed than clients take."""
    count = len(listed(toolset, options.profiles))
    if count > options.listed_tools:
        yield Problem(
            f"{count} tools are listed, and many clients take at most {options.listed_tools}.",
            "Choose a smaller profile: --profile levels, or --profile search.",
        )
