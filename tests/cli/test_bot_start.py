"""`trysquare bot start`: a run begins at the depth of a preset, by a person where that drops a proof."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bots.bot_folders import write_bot
from tests.cli.conftest import Run, Types

HERE = ("--project", ".", "--bot", "mini")


@pytest.fixture
def mini(project: Path) -> Path:
    presets = {"quick": {"actions": ["shape"]}, "short": {"actions": ["build_knowledge"], "drops_proof": True}}
    config = {"name": "mini", "behaviors": ["shape", "code"], "presets": presets}
    write_bot(project / "mini", {"bot_config.json": {**config, "gates": {"shape.gather_context": {"proof": True}}}})
    return project


@pytest.mark.usefixtures("mini")
def test_a_run_starts_with_a_preset_and_status_shows_it(run: Run) -> None:
    started = run("bot", "start", "--preset", "quick", "--json", *HERE).json
    assert (started["preset"], started["actions"]) == ("quick", 3)
    [status] = run("bot", "status", "--json", *HERE).json
    [main] = status["runs"]
    assert (main["preset"], main["progress"], main["open"]) == ("quick", "0/3", 3)
    assert "quick" in run("bot", "status", *HERE).out
    assert run("bot", "start", "--preset", "quick", *HERE).code != 0
    other = run("bot", "start", "--run", "whole", "--json", *HERE).json
    assert (other["preset"], other["actions"]) == (None, 6)


@pytest.mark.usefixtures("mini")
def test_a_proof_is_given_up_in_a_terminal_only(run: Run, types: Types) -> None:
    assert run("bot", "start", "--preset", "short", *HERE).code != 0
    assert run("bot", "status", "--json", *HERE).json[0]["runs"] == []
    types("y\n")
    started = run("bot", "start", "--preset", "short", "--json", *HERE).json
    assert (started["preset"], started["actions"]) == ("short", 4)
