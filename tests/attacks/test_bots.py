"""Attempts on a workflow bot: to close, pass or forge what only a human may, through MCP, the shell and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.attacks.conftest import Attack
from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import BotClient, served

VERSIONS = ("legacy", "2026-07-28")
AUTO = {"name": "initialize_project", "workflow": True, "policy": "auto"}
INITIALIZE = "base_actions/1_initialize_project/action_config.json"
MISSPELT: tuple[dict[str, Any], ...] = (
    {"rejected": True, "reason": "wrong"},
    {"approved": False},
    {"approve": False},
    {"status": "rejected"},
    {"Reject": "no"},
    {"REJECT": True, "reason": "no"},
    {"rejct": "bad"},
    {"reject_reason": "bad"},
    {"rejection": "bad"},
    {"verdict": "reject"},
    {"close": False},
    {"dry_run": True},
    {"expectedAction": "shape.build_knowledge"},
    {"expected-action": "shape.build_knowledge"},
    {"skp": "later"},
    {"parameters": {"reject": True, "reason": "nested once too often"}},
)
WRONG_VALUES: tuple[dict[str, Any], ...] = (
    {"reject": ""},
    {"reject": "  "},
    {"reject": "false"},
    {"reject": "no"},
    {"reject": 0},
    {"reject": 1},
    {"reject": ["bad"]},
    {"reject": {"reason": "bad"}},
    {"reject": True},
    {"reject": False, "reason": "It is wrong."},
    {"reason": "It is wrong."},
    {"skip": ""},
    {"skip": True},
    {"skip": True, "reject": True, "reason": "Both."},
    {"expected_action": ["shape.gather_context"]},
    {"expected_action": "shape.nonsense"},
    {"run": 7},
    {"request_key": 7},
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An empty project."""
    made = tmp_path / "project"
    made.mkdir()
    return made


def mini(tmp_path: Path, **config: Any) -> Path:
    """The minimal bot, with something in its configuration."""
    bot = {"name": "mini", "behaviors": ["shape", "code"], **config}
    return write_bot(tmp_path / "bot", {"bot_config.json": bot, INITIALIZE: AUTO})


def code_of(told: dict[str, Any]) -> str | None:
    """The error code of an answer, or None where the call succeeded."""
    return (told.get("error") or {}).get("code")


async def opened(bot: BotClient) -> None:
    """Settle the folder, and open shape.gather_context."""
    await bot.call("tool", confirm=True)
    assert (await bot.call("tool"))["action"] == "gather_context"


@pytest.mark.parametrize("mode", VERSIONS)
@pytest.mark.parametrize("parameters", MISSPELT, ids=str)
async def test_a_misspelt_rejection_closes_nothing(
    tmp_path: Path, project: Path, attack: Attack, mode: str, parameters: dict[str, Any]
) -> None:
    attack(door=f"MCP {mode}", attempt=f"close with {parameters}")
    async with served(project, bot=mini(tmp_path), name="mini", mode=mode) as bot:
        await opened(bot)
        before = bot.completed()
        told = await bot.call("close_current_action", **parameters)
        assert code_of(told) == "VALIDATION_UNKNOWN_PARAM"
        assert bot.completed() == before


@pytest.mark.parametrize("mode", VERSIONS)
@pytest.mark.parametrize("parameters", WRONG_VALUES, ids=str)
async def test_a_rejection_with_a_wrong_value_closes_nothing(
    tmp_path: Path, project: Path, attack: Attack, mode: str, parameters: dict[str, Any]
) -> None:
    attack(door=f"MCP {mode}", attempt=f"close with {parameters}")
    async with served(project, bot=mini(tmp_path), name="mini", mode=mode) as bot:
        await opened(bot)
        before = bot.completed()
        told = await bot.call("close_current_action", **parameters)
        assert code_of(told) in ("VALIDATION_INVALID_PARAM", "STATE_CONFLICT")
        assert bot.completed() == before


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_misspelt_rejection_through_the_do_tool_closes_nothing(
    tmp_path: Path, project: Path, attack: Attack, mode: str
) -> None:
    attack(door=f"MCP {mode}, gateway profile", attempt="misspelt rejection inside mini_do")
    async with served(project, bot=mini(tmp_path), name="mini", mode=mode, profile=["gateway"]) as bot:
        await opened(bot)
        before = bot.completed()
        for parameters in MISSPELT[:-1]:
            told = await bot.call("do", tool="mini_close_current_action", **parameters)
            assert code_of(told) == "VALIDATION_UNKNOWN_PARAM"
        assert bot.completed() == before


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_misspelt_rejection_beside_parameters_or_as_text_closes_nothing(
    tmp_path: Path, project: Path, attack: Attack, mode: str
) -> None:
    attack(door=f"MCP {mode}", attempt="misspelt rejection beside `parameters`, and as JSON text")
    async with served(project, bot=mini(tmp_path), name="mini", mode=mode) as bot:
        await opened(bot)
        before = bot.completed()
        for arguments in (
            {"rejected": True},
            {"parameters": '{"rejected": true}'},
            {"rejected": True, "parameters": {}},
        ):
            told = await bot.send({"tool": "mini_close_current_action", "arguments": arguments})
            assert code_of(told) == "VALIDATION_UNKNOWN_PARAM"
        assert bot.completed() == before


async def test_the_corrected_call_of_a_misspelt_rejection_rejects(tmp_path: Path, project: Path) -> None:
    async with served(project, bot=mini(tmp_path), name="mini") as bot:
        await opened(bot)
        told = await bot.call("close_current_action", rejected=True, reason="wrong")
        sent_back = await bot.follow(told)
        assert (sent_back["status"], sent_back["action_completed"]) == ("rejected", False)
