"""What every test gets: one event loop, and a home of its own so that no test touches a user's files."""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.needs import SUITES, is_quick
from trysquare.cli.terminal import HANDLER
from trysquare.search import choose_vectors

# A busy machine is slow now and then; how long an example takes says nothing about what is tested.
settings.register_profile("trysquare", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("trysquare")
# Whoever runs the tests may have installed a sentence encoder; what is tested must not depend on it.
choose_vectors(None)


# A shell's background job ignores interrupts, and so would everything that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--quick` runs what needs neither another program nor an installed component."""
    parser.addoption("--quick", action="store_true", help="only tests that run in this process alone")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out whole suites under `--quick`; `None` lets others decide."""
    return (config.getoption("--quick") and collection_path.is_dir() and collection_path.name in SUITES) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out single tests under `--quick`, by what they need."""
    if config.getoption("--quick"):
        kept = [item for item in items if is_quick(item)]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


@pytest.fixture
def anyio_backend() -> str:
    """Trysquare runs on asyncio; anyio comes with the MCP SDK."""
    return "asyncio"


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """State and configuration folders of this test alone."""
    home = tmp_path_factory.mktemp("home")
    for name in ("MCP_TOOL_PREFIX", "MCP_INCLUDE_EXAMPLE_TOOLS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    return home


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """Logging as it was before a command set it up."""
    root, tools = logging.getLogger(), logging.getLogger("trysquare.tools")
    levels, switched_off = (root.level, tools.level), logging.root.manager.disable
    yield
    for handler in [known for known in root.handlers if known.name == HANDLER]:
        root.removeHandler(handler)
    root.setLevel(levels[0])
    tools.setLevel(levels[1])
    logging.disable(switched_off)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests recorded under `shown`: counts that say more than a dot, also where workers ran them."""
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, value in report.user_properties:
                if name == "shown":
                    terminalreporter.write_line(str(value))
    _show_attacks(terminalreporter)
    _show_scorecard(terminalreporter)


def _show_attacks(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the attempts of tests/attacks as one table: where each came in, what it tried, and whether that was held."""
    rows = [
        (*(str(cell) for cell in value), "held" if outcome == "passed" else "BROKEN")
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        for name, value in report.user_properties
        if name == "attack" and isinstance(value, (tuple, list))
    ]
    if rows:
        held = sum(row[-1] == "held" for row in rows)
        terminalreporter.section(f"attacks: {held} of {len(rows)} held")
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        for row in sorted(rows):
            terminalreporter.write_line("  ".join(map(str.ljust, row, widths)).rstrip())


def _show_scorecard(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the trials of the gateway's torture as one table; as JSON too, where TRYSQUARE_SCORECARD names a file."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.getreports(outcome)]
    entries = [value for report in reports for name, value in report.user_properties if name == "torture"]
    if entries:
        from tests.gateway.torture.lanes import LANES
        from tests.gateway.torture.rows import ROWS
        from tests.gateway.torture.scorecard import lines

        terminalreporter.section("the gateway under torture")
        for line in lines(entries, ROWS, LANES):
            terminalreporter.write_line(line)
        if path := os.environ.get("TRYSQUARE_SCORECARD"):
            Path(path).write_text(json.dumps(entries, indent=1), encoding="utf-8")
