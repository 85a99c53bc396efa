"""`trysquare check`: descriptions and schemas held against the rules."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from trysquare.app import open_app, place_of
from trysquare.catalog.lint import lint
from trysquare.catalog.profiles import ProfileChoice
from trysquare.catalog.rules.rule import Finding, LintOptions
from trysquare.cli.logs import start_logging
from trysquare.cli.options import add_shared_options, load
from trysquare.cli.output import count, print_json, styled
from trysquare.core.errors import ConfigurationError
from trysquare.core.toolset import FixedToolset, Toolset
from trysquare.settings.load import Loaded

COLOURS = {"error": "red", "warning": "yellow", "advice": "blue"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `check`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_shared_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Check the tools; 1 if there are errors, or warnings with --strict."""
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    loaded = load(arguments)
    start_logging(loaded)
    async with open_app(loaded.settings, origins=loaded.origins) as app:
        if not app.plain.tools():
            raise ConfigurationError("there are no tools to check.", where="check", hint="Name some with --tools.")
        own = _own(app.toolset)
        findings = _linted(own, app.profiles, loaded)
        if arguments.json:
            print_json([asdict(finding) for finding in findings])
        else:
            _print(own, findings, strict=loaded.settings.strict)
    return 1 if any(is_failure(finding, strict=loaded.settings.strict) for finding in findings) else 0


def is_failure(finding: Finding, *, strict: bool) -> bool:
    """Whether a finding fails the check."""
    return finding.severity == "error" or (strict and finding.severity == "warning")


def _own(toolset: Toolset) -> Toolset:
    """What its reader can mend: the tools of servers behind the gateway are worded by others."""
    tools = [tool for tool in toolset.tools() if tool.metadata.room != "gateway"]
    return FixedToolset(tools, prompts=toolset.prompts())


def _linted(toolset: Toolset, profiles: ProfileChoice, loaded: Loaded) -> list[Finding]:
    settings = loaded.settings.lint
    limits = settings.model_dump(exclude={"ignore"})
    options = LintOptions(ignore=frozenset(settings.ignore), profiles=profiles, **limits)
    try:
        return lint(toolset, options)
    except ConfigurationError as error:
        where = place_of("lint.ignore", loaded.origins) if error.where == "lint.ignore" else error.where
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
