"""`trysquare check`: check descriptions and schemas against the rules."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from trysquare.app import open_app
from trysquare.catalog import ProfileChoice
from trysquare.catalog.lint.base import Finding, LintOptions
from trysquare.catalog.lint.engine import lint
from trysquare.catalog.toolset import CATALOG_TOOLSET
from trysquare.cli.command import Command
from trysquare.cli.options import JSON, add_shared_options
from trysquare.cli.source import SOURCE, load_source
from trysquare.cli.terminal import count, print_report, styled
from trysquare.core.errors import ConfigurationError
from trysquare.core.toolset import StaticToolset, Toolset
from trysquare.providers import setting_location
from trysquare.settings.load import Loaded

COLOURS = {"error": "red", "warning": "yellow", "advice": "blue"}


async def check(arguments: argparse.Namespace) -> int:
    """Lint the tools; 1 if there are errors, or warnings with --strict."""
    loaded = load_source(arguments, arguments.source)
    async with open_app(loaded.settings, origins=loaded.origins, prestart=False, lifespans=False) as app:
        if not app.plain.tools():
            raise ConfigurationError(
                "no tools to check.", where="check", hint="Name a file or module: trysquare check server.py."
            )
        # Those whose texts you can change: not the tools of servers behind the gateway, nor what every server adds.
        tools = [
            tool
            for tool in app.toolset.tools()
            if tool.metadata.toolset not in ("gateway", CATALOG_TOOLSET) and not tool.reads_pages
        ]
        own = StaticToolset(tools, prompts=app.toolset.prompts())
        findings = _linted(own, app.profiles, loaded)
        strict, report = loaded.settings.strict, [asdict(finding) for finding in findings]
        print_report(report, lambda: _print(own, findings, strict=strict), json=arguments.json)
    failures = ("error", "warning") if strict else ("error",)
    return 1 if any(finding.severity in failures for finding in findings) else 0


def _linted(toolset: Toolset, profiles: ProfileChoice, loaded: Loaded) -> list[Finding]:
    settings = loaded.settings.lint
    limits = settings.model_dump(exclude={"ignore"})
    options = LintOptions(ignore=frozenset(settings.ignore), profiles=profiles, **limits)
    try:
        return lint(toolset, options)
    except ConfigurationError as error:
        where = setting_location("lint.ignore", loaded.origins) if error.where == "lint.ignore" else error.where
        raise ConfigurationError(error.message, where=where, hint=error.hint) from None


def _print(toolset: Toolset, findings: Sequence[Finding], *, strict: bool) -> None:
    for finding in findings:
        place = finding.tool if finding.field is None else f"{finding.tool}.{finding.field}"
        print(f"{styled(finding.severity, COLOURS[finding.severity])}  {place}  ({finding.rule})")
        print(f"    {finding.message}")
        print(f"    {finding.fix}")
    counted = Counter(finding.severity for finding in findings)
    found = ", ".join(
        (count(counted["error"], "error"), count(counted["warning"], "warning"), f"{counted['advice']} advice")
    )
    also = " Warnings are errors (--strict)." if strict and counted["warning"] else ""
    print(f"{count(len(toolset.tools()), 'tool')} checked: {found}.{also}")


COMMAND = Command(
    check,
    (SOURCE, JSON, add_shared_options),
    examples=("trysquare check server.py", "trysquare check package.module:tools --strict --json"),
)
