"""lint: what `trysquare check` finds in the descriptions and schemas of a toolset."""

from __future__ import annotations

from collections.abc import Iterator

from trysquare.catalog.rules import (
    behaviour,
    companions,
    descriptions,
    examples,
    names,
    portability,
    schemas,
    sets,
    texts,
)
from trysquare.catalog.rules.rule import Finding, LintOptions, Problem, Rule
from trysquare.core.errors import ConfigurationError
from trysquare.core.nearest import nearest
from trysquare.core.toolset import Toolset

RULES: tuple[Rule, ...] = (
    Rule(name="object-at-top", severity="error", check_tool=schemas.object_at_top),
    Rule(name="closed-schema", severity="error", check_tool=schemas.closed_schema),
    Rule(name="field-described", severity="error", check_tool=schemas.field_described),
    Rule(name="field-says-more", severity="advice", check_tool=schemas.field_says_more),
    Rule(name="clear-parameter-names", severity="warning", check_tool=schemas.clear_parameter_names),
    Rule(name="no-titles", severity="advice", check_tool=schemas.no_titles),
    Rule(name="enum-for-closed-sets", severity="warning", check_tool=schemas.enum_for_closed_sets),
    Rule(name="default-fits", severity="error", check_tool=schemas.default_fits),
    Rule(name="shallow-schema", severity="warning", check_tool=schemas.shallow_schema),
    Rule(name="few-parameters", severity="warning", check_tool=schemas.few_parameters),
    Rule(name="schema-objects", severity="error", check_tool=portability.schema_objects),
    Rule(name="single-types", severity="warning", check_tool=portability.single_types),
    Rule(name="local-references", severity="warning", check_tool=portability.local_references),
    Rule(name="typed-values", severity="warning", check_tool=portability.typed_values),
    Rule(name="description-present", severity="error", check_tool=descriptions.description_present),
    Rule(name="short-first-line", severity="advice", check_tool=descriptions.short_first_line),
    Rule(name="says-more-than-name", severity="warning", check_tool=descriptions.says_more_than_name),
    Rule(name="says-when", severity="advice", check_tool=descriptions.says_when),
    Rule(name="no-placeholders", severity="error", check_tool=descriptions.no_placeholders),
    Rule(name="description-length", severity="warning", check_tool=descriptions.description_length),
    Rule(name="tool-budget", severity="warning", check_tool=descriptions.tool_budget),
    Rule(name="arguments-told-once", severity="advice", check_tool=descriptions.arguments_told_once),
    Rule(name="name-style", severity="warning", check_tool=names.name_style),
    Rule(name="name-length", severity="warning", check_tool=names.name_length),
    Rule(name="distinct-names", severity="error", check_set=names.distinct_names),
    Rule(name="confusable-tools", severity="warning", check_set=sets.confusable_tools),
    Rule(name="destructive-asks", severity="warning", check_tool=behaviour.destructive_asks),
    Rule(name="hints-agree", severity="error", check_tool=behaviour.hints_agree),
    Rule(name="consent-literal-used", severity="error", check_tool=behaviour.consent_literal_used),
    Rule(name="consent-question-fits", severity="error", check_tool=behaviour.consent_question_fits),
    Rule(name="deprecated-names-replacement", severity="warning", check_set=behaviour.deprecated_names_replacement),
    Rule(name="examples-for-complex", severity="warning", check_tool=examples.examples_for_complex),
    Rule(name="examples-fit", severity="error", check_tool=examples.examples_fit),
    Rule(name="examples-concrete", severity="warning", check_tool=examples.examples_concrete),
    Rule(name="examples-explained", severity="advice", check_tool=examples.examples_explained),
    Rule(name="no-hidden-characters", severity="error", check_tool=texts.no_hidden_characters),
    Rule(name="no-commands", severity="error", check_tool=texts.no_commands),
    Rule(name="prompts-described", severity="error", check_toolset=companions.prompts_described),
    Rule(name="resources-described", severity="warning", check_toolset=companions.resources_described),
    Rule(name="listed-count", severity="warning", check_set=sets.listed_count),
    Rule(name="profile-budget", severity="warning", check_set=sets.profile_budget),
)
_RANK = {"error": 0, "warning": 1, "advice": 2}


def lint(toolset: Toolset, options: LintOptions | None = None) -> list[Finding]:
    """What is wrong with a toolset's descriptions and schemas: errors first, then by tool, in a fixed order."""
    chosen = options or LintOptions()
    _refuse_unknown(chosen.ignore)
    rules = [rule for rule in RULES if rule.name not in chosen.ignore]
    found = [finding for rule in rules for finding in _findings(rule, toolset, chosen)]
    return sorted(found, key=lambda one: (_RANK[one.severity], one.tool, one.rule, one.field or "", one.message))


def _findings(rule: Rule, toolset: Toolset, options: LintOptions) -> Iterator[Finding]:
    tools = toolset.tools()
    if rule.check_tool is not None:
        for tool in tools:
            for problem in rule.check_tool(tool, options):
                yield _finding(rule, problem, tool.name)
    together = () if rule.check_set is None else rule.check_set(tools, options)
    beside = () if rule.check_toolset is None else rule.check_toolset(toolset, options)
    for problem in (*together, *beside):
        yield _finding(rule, problem, problem.tool or sets.WHOLE_SET)


def _finding(rule: Rule, problem: Problem, tool: str) -> Finding:
    return Finding(
        rule=rule.name,
        severity=rule.severity,
        tool=tool,
        field=problem.field,
        message=problem.message,
        fix=problem.fix,
    )


def _refuse_unknown(ignored: frozenset[str]) -> None:
    known = [rule.name for rule in RULES]
    for name in sorted(ignored - set(known)):
        close = nearest(name, known)
        meant = f" `{close[0]}` is meant, it seems." if close else ""
        raise ConfigurationError(
            f"There is no lint rule `{name}`.{meant}", where="lint.ignore", hint="`trysquare check` names the rules."
        )
