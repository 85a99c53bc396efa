"""Attempts to make something proven in a strict project with approvers, without the signature of one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.attacks.conftest import Attack
from tests.attacks.test_bots import code_of, mini
from tests.bots.served_bots import BotClient, Person, served
from tests.signers import allow, make_key, sign_code


@pytest.fixture
def ada(tmp_path: Path) -> Path:
    return make_key(tmp_path, "ada@example.org")


@pytest.fixture
def project(tmp_path: Path, ada: Path) -> Path:
    """A project whose only approver is Ada."""
    made = tmp_path / "shop"
    made.mkdir()
    allow(made, ada=ada)
    return made


async def asked(bot: BotClient) -> str:
    """Open shape.gather_context, try to close it, and return the code of the question."""
    assert (await bot.call("shape_gather_context"))["action"] == "gather_context"
    return await asked_again(bot)


async def asked_again(bot: BotClient) -> str:
    waiting = await bot.call("close_current_action")
    assert code_of(waiting) == "CONSENT_REQUIRED"
    return waiting["approval"]["code"]


def proven(bot: BotClient) -> list[str]:
    """The actions that the state file shows as proven, in any run."""
    state = bot.state()
    runs = [state, *state.get("runs", {}).values()]
    lines: list[dict[str, Any]] = [entry for run in runs for entry in run["completed_actions"]]
    return [entry["action_state"] for entry in lines if entry.get("approval") == "proven"]


async def test_a_signature_closes_a_gate_and_leaves_a_receipt(tmp_path: Path, project: Path, ada: Path) -> None:
    async with served(project, bot=mini(tmp_path), name="mini", strict=True, person=Person()) as bot:
        assert sign_code(project, await asked(bot), ada) == 0
        closed = await bot.call("close_current_action")
        assert (closed["approval"], closed["approved_by"], closed["approved_how"]) == (
            "proven", "ada@example.org", "signature",
        )  # fmt: skip
        assert proven(bot) == ["mini.shape.gather_context"]
        assert len(list((project / "workflow_receipts").glob("*.json"))) == 1


async def test_a_yes_in_the_client_is_not_even_asked_for(tmp_path: Path, project: Path, attack: Attack) -> None:
    attack(door="MCP", attempt="a client that answers yes by itself")
    person = Person()
    async with served(project, bot=mini(tmp_path), name="mini", strict=True, person=person) as bot:
        await asked(bot)
        assert (person.asked, proven(bot)) == ([], [])


async def test_a_key_that_is_not_listed_approves_nothing(tmp_path: Path, project: Path, attack: Attack) -> None:
    attack(door="trysquare approve", attempt="sign with a key that is not an approver's")
    eve = make_key(tmp_path, "eve@example.org")
    async with served(project, bot=mini(tmp_path), name="mini", strict=True) as bot:
        assert sign_code(project, await asked(bot), eve) != 0
        assert code_of(await bot.call("close_current_action")) == "CONSENT_REQUIRED"
        assert proven(bot) == []
