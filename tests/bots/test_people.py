"""Who may close, reject and approve an action, and what people leave for the next agent to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import BotClient, Person, served
from trysquare import ConfigurationError
from trysquare.bots import load_bot
from trysquare.bots.definition.model import strength_of
from trysquare.bots.people import is_one_of, references
from trysquare.bots.workflow.machine import Position, weakenings
from trysquare.core.context import local_principal

ME = local_principal().subject
OTHER = f"not-{ME}"


def bot(folder: Path, **config: Any) -> Path:
    return write_bot(folder, {"bot_config.json": {"name": "mini", "behaviors": ["shape", "code"], **config}})


async def at_gather(client: BotClient) -> None:
    await client.call("tool", confirm=True)


@pytest.mark.parametrize(
    ("subject", "name", "fits"),
    [
        ("ada", "ada", True),
        ("token:ada", "ada", True),
        ("oauth:https://id.example#ada", "ada", False),
        ("oauth:https://id.example#ada", "oauth:https://id.example#*", True),
        ("oauth:https://id.example.evil#ada", "oauth:https://id.example#*", False),
        ("oauth:x#ada", "*", False),
        ("adam", "ada", False),
        ("ada", "Ada", False),
        ("token:ada", "token:ada", True),
        ("ada", "token:ada", False),
        ("ada\nx", "ada*", True),
        ("xada", "*ada", True),
        ("a.a", "a.a", True),
        ("aba", "a.a", False),
    ],
)
def test_a_name_stands_for_exactly_these_principals(subject: str, name: str, fits: bool) -> None:
    assert is_one_of(subject, [OTHER, name]) is fits


def test_references_are_found_as_they_are_written() -> None:
    text = "See https://example.com/a/pull/7, acme/shop#12 and #3; not a#b, abc#4 or #x (https://x.example/y)."
    assert references(text) == ["https://example.com/a/pull/7", "acme/shop#12", "#3", "https://x.example/y"]


async def test_an_action_of_others_is_read_and_not_closed_skipped_or_rejected(tmp_path: Path) -> None:
    folder = bot(tmp_path / "bot", gates={"shape": {"assignees": [OTHER]}})
    async with served(tmp_path, bot=folder, name="mini") as client:
        await at_gather(client)
        shown = await client.call("tool")
        assert (shown["action"], shown["assigned_to"]) == ("gather_context", [OTHER])
        for parameters in ({}, {"skip": "Later"}, {"reject": "Wrong place"}, {"request_key": "k"}):
            refused = await client.call("close_current_action", **parameters)
            assert refused["error"]["code"] == "PERMISSION_DENIED"
            assert refused["assigned_to"] == [OTHER]
        mine = await client.call("code_gather_context")
        assert "assigned_to" not in mine
        assert (await client.call("close_current_action"))["completed_action"] == "gather_context"


async def test_only_those_it_is_assigned_to_take_an_action_up_again(tmp_path: Path) -> None:
    folder = bot(tmp_path / "bot")
    async with served(tmp_path, bot=folder, name="mini") as client:
        await at_gather(client)
        await client.call("tool")
        await client.call("close_current_action")
        bot(folder, gates={"shape.gather_context": {"assignees": [OTHER]}})
        await client.call("restart_server")
        refused = await client.call("shape_gather_context")
        assert refused["error"]["code"] == "PERMISSION_DENIED"
        assert client.completed() == ["shape.initialize_project", "shape.gather_context"]


async def test_an_action_with_reviewers_needs_the_proof_of_one_of_them(tmp_path: Path) -> None:
    person = Person()
    gates = {"gather_context": {"reviewers": ["@leads"]}}
    folder = bot(tmp_path / "bot", gates=gates, teams={"leads": [OTHER]})
    async with served(tmp_path, bot=folder, name="mini", person=person) as client:
        await at_gather(client)
        asked = len(person.asked)
        await client.call("tool")
        waiting = await client.call("close_current_action")
        assert waiting["error"]["code"] == "CONSENT_REQUIRED"
        assert "trysquare approve" in waiting["approval"]["command"]
        assert len(person.asked) == asked, "a client of somebody else is not asked"
        bot(folder, gates=gates, teams={"leads": [OTHER, ME]})
        await client.call("restart_server")
        closed = await client.call("close_current_action")
        assert (closed["approval"], closed["approved_by"]) == ("confirmed", ME)
        assert OTHER in person.asked[-1]


def test_a_definition_with_other_people_demands_something_else(tmp_path: Path) -> None:
    def strength(name: str, **config: Any) -> Any:
        return strength_of(load_bot(bot(tmp_path / name, **config)))

    plain = strength("a")
    people = strength("b", gates={"gather_context": {"reviewers": ["ada"], "assignees": ["bob"]}})
    wider = strength("c", gates={"gather_context": {"reviewers": ["ada", "eve"], "assignees": ["bob"]}})
    assert weakenings(plain, people) == ()
    assert weakenings(people, wider)
    assert weakenings(people, plain)


def test_reviewers_make_an_action_a_gate_and_teams_stand_for_their_members(tmp_path: Path) -> None:
    config = {"gates": {"shape": {"reviewers": "@leads", "assignees": ["bob", "@leads"]}}, "teams": {"leads": ["ada"]}}
    gate = load_bot(bot(tmp_path, **config)).gates[Position(behavior="shape", action="gather_context")]
    assert (gate.proof, gate.reviewers, gate.assignees) == (True, ("ada",), ("bob", "ada"))


@pytest.mark.parametrize("teams", [{}, {"leader": ["ada"]}])
def test_an_unknown_team_is_an_error(tmp_path: Path, teams: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="Unknown team `@leads`") as refused:
        load_bot(bot(tmp_path, gates={"shape": {"reviewers": ["@leads"]}}, teams=teams))
    assert ("leader" if teams else "teams") in str(refused.value.hint)


async def test_a_comment_is_read_by_the_next_agent_with_its_references(tmp_path: Path) -> None:
    folder = bot(tmp_path / "bot")
    async with served(tmp_path, bot=folder, name="mini") as client:
        await at_gather(client)
        await client.call("shape_gather_context", comment="Ask the port first, see acme/shop#12")
        await client.call("close_current_action", comment="Half of it is a guess")
    async with served(tmp_path, bot=folder, name="mini") as client:
        again = await client.call("shape_gather_context")
        other = await client.call("code_gather_context")
    comments = again["data"]["instructions"]["comments"]
    assert [each["text"] for each in comments] == ["Ask the port first, see acme/shop#12", "Half of it is a guess"]
    assert (comments[0]["references"], comments[0]["by"]) == (["acme/shop#12"], ME)
    assert "comments" not in other["data"]["instructions"]


async def test_the_latest_comments_stay_with_the_run_and_all_of_them_in_the_audit(tmp_path: Path) -> None:
    async with served(tmp_path, bot=bot(tmp_path / "bot"), name="mini") as client:
        await at_gather(client)
        for number in range(22):
            await client.call("shape_gather_context", comment=f"comment {number}")
        shown = await client.call("shape_gather_context", fresh=True)
    comments = shown["data"]["instructions"]["comments"]
    assert [comments[0]["text"], comments[-1]["text"], len(comments)] == ["comment 2", "comment 21", 20]
