"""Attempts on a workflow bot: to close, pass or forge what only a human may, through MCP, the shell and files."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.conftest import Attack
from tests.bots.bot_folders import write_bot
from tests.bots.served_bots import BotClient, Person, served
from trysquare.cli.main import main
from trysquare.store import project_state
from trysquare.store.audit import Audit
from trysquare.store.database import open_database

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


# Proof gates: nothing behind an open one is opened or closed without a human.

GATE = {"shape.gather_context": {"proof": True}}
BEHIND = (
    "shape_build_knowledge",
    "code_tool",
    "code_initialize_project",
    "code_gather_context",
    "code_build_knowledge",
)


def completions(bot: BotClient) -> set[str]:
    """The completed actions of every run."""
    state = bot.state()
    runs = [state, *state.get("runs", {}).values()]
    return {entry["action_state"].partition(".")[2] for run in runs for entry in run["completed_actions"]}


@pytest.mark.parametrize("mode", VERSIONS)
@pytest.mark.parametrize("profile", ["full", "levels", "gateway"])
async def test_a_jump_over_a_proof_gate_is_refused(
    tmp_path: Path, project: Path, attack: Attack, mode: str, profile: str
) -> None:
    attack(door=f"MCP {mode}, {profile}", attempt="jump over a proof gate, and close what is behind it")
    folder = mini(tmp_path, gates=GATE)
    async with served(project, bot=folder, name="mini", mode=mode, profile=[profile]) as bot:
        await opened(bot)
        for tool in BEHIND:
            for told in (await bot.call(tool), await bot.call("do", tool=f"mini_{tool}")):
                assert (code_of(told), told["gate"]) == ("STATE_CONFLICT", "mini.shape.gather_context")
            assert code_of(await bot.call("close_current_action")) == "CONSENT_REQUIRED"
            assert code_of(await bot.call("close_current_action", skip="Not needed.")) == "CONSENT_REQUIRED"
        assert completions(bot) == {"shape.initialize_project"}


@pytest.mark.parametrize("mode", VERSIONS)
async def test_another_run_does_not_lead_around_a_gate(
    tmp_path: Path, project: Path, attack: Attack, mode: str
) -> None:
    attack(door=f"MCP {mode}", attempt="pass the gate in another run, with the approval of the first")
    folder = mini(tmp_path, gates=GATE)
    async with served(project, bot=folder, name="mini", mode=mode) as bot:
        await opened(bot)
        await bot.call("tool", run="b")
        await bot.call("tool", run="b")
        assert code_of(await bot.call("code_tool", run="b")) == "STATE_CONFLICT"
        assert code_of(await bot.call("close_current_action", run="b")) == "CONSENT_REQUIRED"
        assert completions(bot) == {"shape.initialize_project"}


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_reopened_gate_holds_what_is_behind_it_again(
    tmp_path: Path, project: Path, attack: Attack, mode: str
) -> None:
    attack(door=f"MCP {mode}", attempt="reopen a proven gate, and go on behind it")
    person = Person()
    async with served(project, bot=mini(tmp_path, gates=GATE), name="mini", mode=mode, person=person) as bot:
        await opened(bot)
        assert (await bot.call("close_current_action"))["approval"] == "confirmed"
        assert (await bot.call("tool"))["action"] == "build_knowledge"
        assert (await bot.call("shape_gather_context"))["jump"] == "reopened"
        person.agrees = False
        assert code_of(await bot.call("shape_build_knowledge")) == "STATE_CONFLICT"
        assert code_of(await bot.call("close_current_action")) == "CONSENT_REFUSED"


@pytest.mark.parametrize("mode", VERSIONS)
async def test_one_yes_does_not_end_a_strict_workflow(tmp_path: Path, project: Path, attack: Attack, mode: str) -> None:
    attack(door=f"MCP {mode}, --strict", attempt="open the last action and have one yes end the workflow")
    person = Person()
    async with served(project, bot=mini(tmp_path), name="mini", mode=mode, person=person, strict=True) as bot:
        await opened(bot)
        assert code_of(await bot.call("code_build_knowledge")) == "STATE_CONFLICT"
        closed = await bot.call("close_current_action")
        assert (closed["completed_action"], closed["next_action"]) == ("gather_context", "build_knowledge")


@pytest.mark.parametrize("mode", VERSIONS)
async def test_the_question_says_what_closing_means(tmp_path: Path, project: Path, attack: Attack, mode: str) -> None:
    attack(door=f"MCP {mode}", attempt="have a human end a workflow without saying so")
    person = Person()
    folder = mini(tmp_path, gates={"code.build_knowledge": {"proof": True}})
    async with served(project, bot=folder, name="mini", mode=mode, person=person) as bot:
        await opened(bot)
        await bot.call("code_build_knowledge")
        closed = await bot.call("close_current_action")
        assert (closed["workflow_complete"], closed["open_count"]) == (False, 4)
        asked = person.asked[-1]
        assert "ends the workflow with 4 open" in asked
        assert "shape.gather_context" in asked
        assert "workflow_ended" in bot.state()
        assert "workflow_complete" not in bot.state()


@pytest.mark.parametrize("mode", VERSIONS)
async def test_the_first_close_of_all_is_recorded_as_not_delivered(
    tmp_path: Path, project: Path, attack: Attack, mode: str
) -> None:
    attack(door=f"MCP {mode}", attempt="close before anything was delivered, and have it look seen")
    async with served(project, bot=mini(tmp_path), name="mini", mode=mode) as bot:
        closed = await bot.call("close_current_action")
        assert (closed["completed_action"], closed["delivered"]) == ("initialize_project", False)
        assert closed["warnings"]
        assert bot.state()["completed_actions"][0]["delivered"] is False


# Strictness is remembered with the run.


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_process_without_strict_closes_nothing_of_a_strict_run(
    tmp_path: Path, project: Path, attack: Attack, mode: str
) -> None:
    attack(door=f"MCP {mode}", attempt="work on a strict run with a server that is not strict")
    folder = mini(tmp_path)
    async with served(project, bot=folder, name="mini", mode=mode, person=Person(), strict=True) as bot:
        await opened(bot)
    async with served(project, bot=folder, name="mini", mode=mode) as bot:
        assert code_of(await bot.call("close_current_action")) == "CONSENT_REQUIRED"
        assert code_of(await bot.call("code_build_knowledge")) == "STATE_CONFLICT"
        state = bot.state()
        assert state["strict"] is True
        bot.write_state(**{**state, "strict": False})
        assert code_of(await bot.call("close_current_action")) == "CONSENT_REQUIRED"
        (project / "workflow_state.json").unlink()
        assert (await bot.call("shape_gather_context"))["action"] == "gather_context"
        assert bot.state()["strict"] is True
        assert code_of(await bot.call("close_current_action")) == "CONSENT_REQUIRED"


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_strict_run_stays_strict_without_its_database(
    tmp_path: Path, project: Path, attack: Attack, mode: str
) -> None:
    attack(door=f"MCP {mode}", attempt="delete .trysquare to make a strict run lenient")
    folder = mini(tmp_path)
    async with served(project, bot=folder, name="mini", mode=mode, person=Person(), strict=True) as bot:
        await opened(bot)
    shutil.rmtree(project / ".trysquare")
    async with served(project, bot=folder, name="mini", mode=mode) as bot:
        await bot.call("tool")
        await bot.call("shape_gather_context")
        assert code_of(await bot.call("close_current_action")) == "CONSENT_REQUIRED"


@pytest.mark.parametrize("mode", VERSIONS)
async def test_what_was_claimed_counts_as_open_in_a_strict_run(
    tmp_path: Path, project: Path, attack: Attack, mode: str
) -> None:
    attack(door=f"MCP {mode}", attempt="claim actions first, and make the run strict behind them")
    folder = mini(tmp_path)
    async with served(project, bot=folder, name="mini", mode=mode) as bot:
        await opened(bot)
        assert (await bot.call("close_current_action"))["approval"] == "claimed"
        await bot.call("tool")
    async with served(project, bot=folder, name="mini", mode=mode, strict=True, person=Person()) as bot:
        assert code_of(await bot.call("close_current_action")) == "STATE_CONFLICT"
        assert (await bot.call("tool"))["action"] == "gather_context"
        assert (await bot.call("close_current_action"))["approval"] == "confirmed"


# A definition that demands less asks a human before it counts for a run that was begun.

WEAKER: dict[str, dict[str, Any]] = {
    "proof switched off": {"bot_config.json": {"name": "mini", "behaviors": ["shape", "code"]}},
    "proof set to false": {
        "bot_config.json": {
            "name": "mini",
            "behaviors": ["shape", "code"],
            "gates": {"shape.gather_context": {"proof": False}},
        }
    },
    "the gate is passed over": {
        "bot_config.json": {
            "name": "mini",
            "behaviors": ["shape", "code"],
            "gates": {"shape.gather_context": {"proof": True, "policy": "skip"}},
        }
    },
    "the behavior is gone": {"bot_config.json": {"name": "mini", "behaviors": ["code"]}},
    "the action is independent": {
        "base_actions/2_gather_context/action_config.json": {"name": "gather_context", "workflow": False},
        "bot_config.json": {"name": "mini", "behaviors": ["shape", "code"]},
    },
}


@pytest.mark.parametrize("mode", VERSIONS)
@pytest.mark.parametrize("change", WEAKER.values(), ids=WEAKER)
async def test_a_weaker_definition_asks_a_human_first(
    tmp_path: Path, project: Path, attack: Attack, mode: str, change: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    attack(door=f"MCP {mode}, bot folder", attempt=f"weaken the definition and restart: {request.node.callspec.id}")
    folder = mini(tmp_path, gates=GATE)
    async with served(project, bot=folder, name="mini", mode=mode) as bot:
        await opened(bot)
        write_changes(folder, change)
        assert code_of(await bot.call("restart_server")) is None
        for tool in ("tool", "code_tool", "close_current_action"):
            assert code_of(await bot.call(tool)) in ("CONSENT_REQUIRED", "STATE_CONFLICT")
        assert completions(bot) == {"shape.initialize_project"}
        assert any(body["digest"] for body in audited(project, "workflow.definition"))
        before = len(audited(project, "workflow.definition"))
        write_changes(folder, {"bot_config.json": {"name": "mini", "behaviors": ["shape", "code"], "gates": GATE}})
        if "base_actions/2_gather_context/action_config.json" in change:
            gather = {"name": "gather_context", "workflow": True}
            write_changes(folder, {"base_actions/2_gather_context/action_config.json": gather})
        await bot.call("restart_server")
        assert len(audited(project, "workflow.definition")) > before
        assert (await bot.call("tool"))["action"] == "gather_context"


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_human_may_accept_a_weaker_definition(tmp_path: Path, project: Path, mode: str) -> None:
    folder, person = mini(tmp_path, gates=GATE), Person()
    async with served(project, bot=folder, name="mini", mode=mode, person=person) as bot:
        await opened(bot)
        write_changes(folder, WEAKER["proof switched off"])
        await bot.call("restart_server")
        assert (await bot.call("close_current_action"))["approval"] == "claimed"
        assert "no longer needs" in person.asked[0]
        assert audited(project, "workflow.definition_accepted")[0]["demands_less"]


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_stronger_definition_counts_at_once(tmp_path: Path, project: Path, mode: str) -> None:
    folder = mini(tmp_path)
    async with served(project, bot=folder, name="mini", mode=mode) as bot:
        await opened(bot)
        write_changes(folder, {"bot_config.json": {"name": "mini", "behaviors": ["shape", "code"], "gates": GATE}})
        await bot.call("restart_server")
        assert code_of(await bot.call("close_current_action")) == "CONSENT_REQUIRED"


def write_changes(folder: Path, files: dict[str, Any]) -> None:
    """Write files of a bot's folder anew."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(json.dumps(content), encoding="utf-8")


def audited(project: Path, kind: str) -> list[dict[str, Any]]:
    """The rows of the audit of one kind."""
    database = open_database(project_state(project))
    try:
        return [dict(row.body) for row in Audit(database).rows() if row.kind == kind]
    finally:
        database.close()


# The shell: rewind and fork restore no proof that does not fit the files.


@pytest.mark.parametrize("mode", VERSIONS)
async def test_rewind_makes_no_proof(tmp_path: Path, project: Path, attack: Attack, mode: str) -> None:
    attack(door=f"shell, after MCP {mode}", attempt="bot rewind to a proof of other contents")
    folder, person = mini(tmp_path, gates=GATE), Person()
    async with served(project, bot=folder, name="mini", mode=mode, person=person) as bot:
        await opened(bot)
        await bot.call("tool", answers={"Who?": "Ada"})
        proven = await bot.call("close_current_action")
        assert proven["approval"] == "confirmed"
        version, entry = bot.state()["version"], bot.state()["completed_actions"][-1]
        await bot.call("shape_gather_context", answers={"Who?": "Eve"})
    told = shell("bot", "rewind", str(version), "--bot", str(folder), "--project", str(project), "--json")
    assert told["open_again"] == ["shape.gather_context"]
    assert told["files_not_restored"] == ["docs/mini/clarification.json"]
    async with served(project, bot=folder, name="mini", mode=mode) as bot:
        assert bot.state()["current_action"] == "mini.shape.gather_context"
        await bot.call("tool")
        assert code_of(await bot.call("close_current_action")) == "CONSENT_REQUIRED"
        await bot.call("tool", answers={"Who?": "Ada"})
    shell("bot", "rewind", str(version), "--bot", str(folder), "--project", str(project), "--json")
    async with served(project, bot=folder, name="mini", mode=mode) as bot:
        again = bot.state()["completed_actions"][-1]
        assert (again["approval"], again["timestamp"]) == ("confirmed", entry["timestamp"])


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_fork_takes_only_proofs_that_fit_its_files(
    tmp_path: Path, project: Path, attack: Attack, mode: str
) -> None:
    attack(door=f"shell, after MCP {mode}", attempt="bot fork with proofs of other contents")
    folder, person = mini(tmp_path, gates=GATE), Person()
    async with served(project, bot=folder, name="mini", mode=mode, person=person) as bot:
        await opened(bot)
        await bot.call("tool", answers={"Who?": "Ada"})
        await bot.call("close_current_action")
    here = ("--bot", str(folder), "--project", str(project), "--json")
    assert shell("bot", "fork", "same", *here)["open_again"] == []
    (project / "docs/mini/clarification.json").write_text('{"shape": {"answers": {"Who?": "Eve"}}}', encoding="utf-8")
    assert shell("bot", "fork", "other", *here)["open_again"] == ["shape.gather_context"]
    async with served(project, bot=folder, name="mini", mode=mode) as bot:
        assert (await bot.call("tool", run="same"))["action"] == "build_knowledge"
        assert (await bot.call("tool", run="other"))["action"] == "gather_context"
        assert code_of(await bot.call("code_tool", run="other")) == "STATE_CONFLICT"


@pytest.mark.parametrize(
    "words", [("--no-strict",), ("--config", "other.toml"), ()], ids=["--no-strict", "--config", "environment"]
)
def test_the_command_line_does_not_loosen_a_strict_run(
    tmp_path: Path, project: Path, attack: Attack, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    attack(door="shell", attempt=f"close a strict run with {' '.join(words) or 'TRYSQUARE_STRICT=false'}")
    folder = mini(tmp_path)
    monkeypatch.chdir(project)
    (project / "other.toml").write_text("strict = false\n", encoding="utf-8")
    here = ("--bot", str(folder), "--project", str(project))
    shell("call", "mini_shape_gather_context", *here, "--strict", "--json")
    if not words:
        monkeypatch.setenv("TRYSQUARE_STRICT", "false")
    told = shell("call", "mini_close_current_action", *here, *words, "--json")
    assert code_of(told) == "CONSENT_REQUIRED"


def test_a_run_is_loosened_only_in_a_terminal(
    tmp_path: Path, project: Path, attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack(door="shell", attempt="bot loosen without a terminal")
    folder = mini(tmp_path)
    monkeypatch.chdir(project)
    here = ("--bot", str(folder), "--project", str(project))
    shell("call", "mini_shape_gather_context", *here, "--strict", "--json")
    assert main(["bot", "loosen", *here]) == 2
    assert code_of(shell("call", "mini_close_current_action", *here, "--json")) == "CONSENT_REQUIRED"


def shell(*words: str) -> dict[str, Any]:
    """Run the command and read the JSON that it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(list(words))
    return json.loads(printed.getvalue())


# Runs never share what they hold.


@pytest.mark.parametrize("mode", VERSIONS)
async def test_two_runs_share_no_answers_plans_or_documents(
    tmp_path: Path, project: Path, attack: Attack, mode: str
) -> None:
    attack(door=f"MCP {mode}", attempt="read or overwrite the answers of another run")
    async with served(project, mode=mode) as bot:
        await bot.call("tool", confirm=True)
        await bot.call("shape_gather_context", answers={"Who?": "A"})
        await bot.call("shape_gather_context", run="b", answers={"Who?": "B"})
        main_run = await bot.call("shape_gather_context", fresh=True)
        other = await bot.call("shape_gather_context", run="b", fresh=True)
        assert main_run["data"]["instructions"]["clarifications"]["answers"] == {"Who?": "A"}
        assert other["data"]["instructions"]["clarifications"]["answers"] == {"Who?": "B"}
        built = await bot.call("shape_build_knowledge", run="b")
        assert built["data"]["documents"] == ["docs/stories/runs/b/story-graph.json"]
        graph = project / "docs/stories/runs/b/story-graph.json"
        graph.write_text(json.dumps({"epics": [{"name": "Eat"}]}), encoding="utf-8")
        rendered = await bot.call("shape_render_output", run="b")
        assert all("/runs/b/" in each["path"] for each in rendered["data"]["files"])
        assert sorted(each.name for each in (project / "docs/stories").iterdir()) == ["clarification.json", "runs"]


@pytest.mark.parametrize("mode", VERSIONS)
@pytest.mark.parametrize("run", ["..", "../b", "a/b", ".b", "", "Main", "a\\b", "b\0", "b" * 65])
async def test_the_name_of_a_run_leads_nowhere_else(
    tmp_path: Path, project: Path, attack: Attack, mode: str, run: str
) -> None:
    attack(door=f"MCP {mode}", attempt=f"a run named {run[:8]!r}")
    async with served(project, bot=mini(tmp_path), name="mini", mode=mode) as bot:
        await opened(bot)
        told = await bot.call("shape_gather_context", run=run, answers={"Who?": "Eve"})
        assert run == "" or code_of(told) in ("VALIDATION_INVALID_PARAM", "STATE_CONFLICT")
    assert saved_answers(project) == (["docs/mini/clarification.json"] if run == "" else [])


def saved_answers(project: Path) -> list[str]:
    """Every file of answers in a project."""
    return [str(each.relative_to(project)) for each in project.rglob("clarification.json")]


# What was lost is told, and what cannot be done is not called done.


@pytest.mark.parametrize("damage", [b"garbage", b"", b"SQLite format 3\0cut"], ids=["garbage", "empty", "cut"])
@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_damaged_database_is_told_once(tmp_path: Path, project: Path, mode: str, damage: bytes) -> None:
    folder = mini(tmp_path)
    async with served(project, bot=folder, name="mini", mode=mode) as bot:
        await opened(bot)
    spoil(project, damage)
    async with served(project, bot=folder, name="mini", mode=mode) as bot:
        told = await bot.call("tool")
        assert (told["action"], len(told["recovered"])) == ("gather_context", 1)
        assert "workflow_state.json" in told["recovered"][0]
        assert (".corrupt-" in told["recovered"][0]) == (damage != b"")
        assert "recovered" not in await bot.call("tool")


def spoil(project: Path, damage: bytes) -> None:
    """Write something else in place of the database."""
    for left in (project / ".trysquare").glob("state.db-*"):
        left.unlink()
    (project / ".trysquare/state.db").write_bytes(damage)


OTHER: dict[str, Any] = {
    "base_actions/4_render_output/action_config.json": {"name": "render_output", "workflow": True},
    "base_actions/5_validate_rules/action_config.json": {"name": "validate_rules", "workflow": True},
    "behaviors/1_shape/2_content/1_knowledge_graph/build_incident.json": {
        "name": "incident",
        "output": "docs/incident.json",
        "template": "incident.json",
    },
    "behaviors/1_shape/2_content/1_knowledge_graph/incident.json": {"title": "", "severity": ""},
    "behaviors/1_shape/2_content/2_render/render_page.json": {
        "name": "page",
        "input": "docs/incident.json",
        "output": "docs/incident.md",
        "template": "templates/page.md",
    },
    "behaviors/1_shape/2_content/2_render/templates/page.md": "# {{title}}",
}


@pytest.mark.parametrize("mode", VERSIONS)
async def test_a_document_of_another_shape_is_rendered_and_its_absence_is_not_called_done(
    tmp_path: Path, project: Path, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_bot(tmp_path / "bot", {**OTHER, INITIALIZE: AUTO})
    assert main(["bot", "check", str(folder), "--json"]) == 1
    print_out = capsys.readouterr().out
    assert json.loads(print_out)["findings"], print_out
    async with served(project, bot=folder, name="mini", mode=mode) as bot:
        await bot.call("tool", confirm=True)
        absent = await bot.call("shape_render_output")
        assert absent["data"].get("rendered", 0) in (0, [])
        assert not (project / "docs" / "incident.md").exists()
        write_changes(project, {"docs/incident.json": {"title": "Fire", "severity": "high"}})
        assert (await bot.call("shape_render_output"))["success"] is True
        assert (project / "docs" / "incident.md").read_text(encoding="utf-8").startswith("# Fire")
