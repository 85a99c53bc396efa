"""lint(): all rules over a toolset, for `trysquare check`."""

from __future__ import annotations

from trysquare.catalog.lint import schema_rules, text_rules, tool_rules
from trysquare.catalog.lint.base import Finding, LintOptions, Rule
from trysquare.core.errors import ConfigurationError
from trysquare.core.text import closest_names
from trysquare.core.toolset import Toolset

RULES = tuple(
    rule
    for module in (schema_rules, text_rules, tool_rules)
    for rule in vars(module).values()
    if isinstance(rule, Rule)
)
"""Every decorated function of the rule modules."""
_RANK = {"error": 0, "warning": 1, "advice": 2}


def lint(toolset: Toolset, options: LintOptions | None = None) -> list[Finding]:
    """The problems of a toolset's descriptions and schemas: errors first, then by tool, in a fixed order."""
    chosen = options or LintOptions()
    known = [rule.name for rule in RULES]
    for name in sorted(chosen.ignore - set(known)):
        meant = "".join(f" Did you mean `{close}`?" for close in closest_names(name, known)[:1])
        hint = "`trysquare check` names the rules."
        raise ConfigurationError(f"Unknown lint rule `{name}`.{meant}", where="lint.ignore", hint=hint)
    found = [one for rule in RULES if rule.name not in chosen.ignore for one in rule.findings(toolset, chosen)]
    return sorted(found, key=lambda one: (_RANK[one.severity], one.tool, one.rule, one.field or "", one.message))
