"""Attempts to make something proven in a strict project with approvers, without the signature of one of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.conftest import Attack
from tests.attacks.test_bots import code_of, mini
from tests.bots.served_bots import BotClient, Person, served
from tests.signers import allow, make_key, sign_code
from trysquare.cli.main import main
from trysquare.core.approvals import ConsentRequest, SignedStatement
from trysquare.store import Approvers, Database, StoredApprovals, project_state
from trysquare.store.database import open_database
from trysquare.store.signatures import sign_text


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


# A signature that was given for something else, or at another time.


def approvals(project: Path) -> Database:
    return open_database(project_state(project))


def edit(project: Path, statement: str, *values: object) -> int:
    """Change the project's database as a shell can; returns the number of changed rows."""
    with contextlib.closing(approvals(project)) as database, database.write() as connection:
        return connection.execute(statement, values).rowcount


def signed_row(project: Path) -> tuple[str, str]:
    """What was signed last."""
    with contextlib.closing(approvals(project)) as database, database.read() as connection:
        return connection.execute("SELECT statement, signature FROM receipts ORDER BY id DESC LIMIT 1").fetchone()


def forge(project: Path, code: str, text: str | None, signature: str | None) -> None:
    """Mark a question as approved, with this text and signature."""
    changed = edit(
        project, "UPDATE approvals SET state = 'approved', statement = ?, signature = ? WHERE code = ?",
        text, signature, code,
    )  # fmt: skip
    assert changed == 1


def raw_signature(folder: Path, key: Path, text: str, namespace: str) -> str:
    """A signature made by ssh-keygen itself."""
    file = folder / "text"
    file.write_text(text, encoding="ascii")
    file.with_suffix(".sig").unlink(missing_ok=True)
    words = ["ssh-keygen", "-Y", "sign", "-n", namespace, "-f", str(key), str(file)]
    subprocess.run(words, check=True, capture_output=True)
    return file.with_suffix(".sig").read_text(encoding="ascii")


def statement(project: Path, code: str) -> str:
    """The text that an approver would sign now."""
    approvers = Approvers(root=project, file=project / ".trysquare-approvers")
    with contextlib.closing(approvals(project)) as database:
        return StoredApprovals(database, approvers=approvers, strict=True).statement(code)


async def refused(bot: BotClient) -> None:
    assert code_of(await bot.call("close_current_action")) == "CONSENT_REQUIRED"
    assert (proven(bot), bot.completed()) == ([], [])


RECEIPT_OF_ALICE = (
    "INSERT INTO receipts (tool, principal, digest, question, approved, by, how, at)"
    " SELECT tool, principal, digest, question, 1, 'alice', 'cli', '2026-01-31T12:00:00+00:00' FROM approvals"
    " WHERE code = ?"
)


async def test_forged_rows_with_every_wrong_signature_close_nothing(
    tmp_path: Path, project: Path, ada: Path, attack: Attack
) -> None:
    attack(door="state.db", attempt="approve the row with no, an altered, a foreign or an expired signature")
    eve = make_key(tmp_path, "eve@example.org")
    async with served(project, bot=mini(tmp_path), name="mini", strict=True) as bot:
        code = await asked(bot)
        for forged in (None, "", "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"):
            forge(project, code, statement(project, code), forged)
            assert edit(project, RECEIPT_OF_ALICE, code) == 1
            await refused(bot)
            code = await asked_again(bot)
        for key, namespace, change in (
            (eve, "trysquare", lambda text: text),
            (ada, "git", lambda text: text),
            (ada, "file", lambda text: text),
            (ada, "trysquare", lambda text: text.replace('"run": "main"', '"run": "b"').replace("run: ", "run:  ")),
            (ada, "trysquare", lambda text: text.replace("build_knowledge", "nothing")),
            (ada, "trysquare", lambda text: text.replace("expires: \"2", "expires: \"1")),
        ):  # fmt: skip
            text = change(statement(project, code))
            forge(project, code, text, raw_signature(tmp_path, key, text, namespace))
            await refused(bot)
            code = await asked_again(bot)
        text = statement(project, code)
        forge(
            project,
            code,
            text.replace('"open_actions": 5', '"open_actions": 1') + " ",
            raw_signature(tmp_path, ada, text, "trysquare"),
        )
        await refused(bot)


async def test_a_signature_counts_once_and_for_its_question_only(
    tmp_path: Path, project: Path, ada: Path, attack: Attack
) -> None:
    attack(door="state.db", attempt="use a signature again, for the same or the next question")
    async with served(project, bot=mini(tmp_path), name="mini", strict=True) as bot:
        code = await asked(bot)
        assert sign_code(project, code, ada) == 0
        old = signed_row(project)
        assert (await bot.call("close_current_action"))["approval"] == "proven"
        await bot.call("shape_build_knowledge")
        following = await asked_again(bot)
        forge(project, following, *old)
        assert code_of(await bot.call("close_current_action")) == "CONSENT_REQUIRED"
        await bot.call("shape_gather_context")
        again = await asked_again(bot)
        forge(project, again, *old)
        assert code_of(await bot.call("close_current_action")) == "CONSENT_REQUIRED"
        forge(project, await asked_again(bot), old[0], old[1])
        assert code_of(await bot.call("close_current_action")) == "CONSENT_REQUIRED"


async def test_an_old_signature_has_expired(tmp_path: Path, project: Path, ada: Path, attack: Attack) -> None:
    attack(door="state.db", attempt="use a signature after its time, with the row's own time set later")
    now = [1_800_000_000.0]
    approvers = Approvers(root=project, file=project / ".trysquare-approvers")
    request = ConsentRequest(tool="pay", principal="p", digest="d", question="Pay?", arguments={}, strict=True)
    with contextlib.closing(approvals(project)) as database:
        store = StoredApprovals(database, approvers=approvers, clock=lambda: now[0])
        code = store.decide(request).code
        assert code is not None
        text = store.statement(code)
        store.approve_signed(code, SignedStatement(text=text, signature=sign_text(text, ada)))
        edit(project, "UPDATE approvals SET expires = expires * 2")
        now[0] += 601
        late = store.decide(request)
        assert (late.state, "expired" in late.reason) == ("waiting", True)


async def test_a_rule_that_does_not_cover_the_gate_closes_nothing(
    tmp_path: Path, project: Path, ada: Path, attack: Attack
) -> None:
    attack(door="trysquare approve", attempt="sign as an approver of another gate, bot or tool")
    bob = make_key(tmp_path, "bob@example.org")
    allow(project, ada=ada, bob=bob)
    rules = ["gate:mini.code.*=bob@example.org", "bot:release=bob@example.org", "gate:mini.shape.*=ada@example.org"]
    (project / "trysquare.toml").write_text(f"strict = true\n[approvers]\nrules = {rules}\n", encoding="utf-8")
    async with served(project, bot=mini(tmp_path), name="mini", strict=True, approvers={"rules": rules}) as bot:
        code = await asked(bot)
        config = ("--config", str(project / "trysquare.toml"))
        assert sign_code(project, code, bob, *config) != 0
        text = statement(project, code)
        forge(project, code, text, raw_signature(tmp_path, bob, text, "trysquare"))
        await refused(bot)
        assert sign_code(project, await asked_again(bot), ada, *config) == 0
        assert (await bot.call("close_current_action"))["approved_by"] == "ada@example.org"


def test_a_terminal_without_the_key_proves_nothing(tmp_path: Path, project: Path, attack: Attack) -> None:
    attack(door="script", attempt='script -qec "trysquare approve CODE"')

    async def question() -> str:
        async with served(project, bot=mini(tmp_path), name="mini", strict=True) as bot:
            return await asked(bot)

    code = asyncio.run(question())
    command = f"{sys.executable} -m trysquare approve {code} --project {project}"
    typed = subprocess.run(
        ["script", "-qec", command, "/dev/null"],
        input="y\n" * 5,
        capture_output=True,
        text=True,
        check=False,
        cwd=project,
    )
    assert "not proven" in typed.stdout

    async def after() -> None:
        async with served(project, bot=mini(tmp_path / "again"), name="mini", strict=True) as bot:
            await refused(bot)

    asyncio.run(after())


# What was proven stays proven wherever the files go, and nothing else does.


async def closed_by(bot: BotClient, project: Path, key: Path, run: str = "main") -> None:
    """Close shape.gather_context with a signature."""
    await bot.call("shape_gather_context", run=run)
    waiting = await bot.call("close_current_action", run=run)
    assert sign_code(project, waiting["approval"]["code"], key) == 0
    assert (await bot.call("close_current_action", run=run))["approval"] == "proven"


def clone(project: Path, to: Path) -> Path:
    """What git brings to another machine: everything but the database."""
    shutil.copytree(project, to, ignore=shutil.ignore_patterns(".trysquare"))
    return to


async def test_a_clone_keeps_what_was_signed(tmp_path: Path, project: Path, ada: Path) -> None:
    folder = mini(tmp_path)
    async with served(project, bot=folder, name="mini", strict=True) as bot:
        await closed_by(bot, project, ada)
    fresh = clone(project, tmp_path / "other" / "shop")
    async with served(fresh, bot=folder, name="mini", strict=True) as bot:
        assert (await bot.call("shape_build_knowledge"))["action"] == "build_knowledge"
        assert proven(bot) == ["mini.shape.gather_context"]
        await closed_next(bot, fresh, ada)
    shutil.copy(project / "workflow_state.json", fresh / "workflow_state.json")
    async with served(fresh, bot=folder, name="mini", strict=True) as bot:
        assert (await bot.call("tool"))["action"] == "build_knowledge"
        assert proven(bot) == ["mini.shape.gather_context"]


async def closed_next(bot: BotClient, project: Path, key: Path) -> None:
    assert sign_code(project, await asked_again(bot), key) == 0
    assert (await bot.call("close_current_action"))["approval"] == "proven"


async def test_a_clone_without_a_receipt_that_holds_keeps_nothing(
    tmp_path: Path, project: Path, ada: Path, attack: Attack
) -> None:
    attack(door="workflow_state.json", attempt="forge `proven`, without, with an edited, or with a copied receipt")
    folder = mini(tmp_path)
    async with served(project, bot=folder, name="mini", strict=True) as bot:
        await closed_by(bot, project, ada)
    for number, forgery in enumerate((_no_receipt, _edited_receipt, _other_run, _other_project, _more_actions)):
        fresh = forgery(clone(project, tmp_path / f"clone{number}" / "shop"))
        async with served(fresh, bot=folder, name="mini", strict=True) as bot:
            behind = await bot.call("code_gather_context")
            assert code_of(behind) == "STATE_CONFLICT", forgery
            last = ["mini.shape.gather_context"] if forgery is _more_actions else []
            assert proven(bot) == last, forgery


def _receipts(project: Path) -> list[Path]:
    return list((project / "workflow_receipts").glob("*.json"))


def _no_receipt(project: Path) -> Path:
    shutil.rmtree(project / "workflow_receipts")
    return project


def _edited_receipt(project: Path) -> Path:
    [receipt] = _receipts(project)
    receipt.write_text(receipt.read_text(encoding="utf-8").replace("ends_workflow", "ends_work"), encoding="utf-8")
    return project


def _other_run(project: Path) -> Path:
    """The proof of the main run in run `b`, too."""
    state = json.loads((project / "workflow_state.json").read_text(encoding="utf-8"))
    lines, version = state.pop("completed_actions"), state["version"]
    part = {name: state.pop(name) for name in ("current_behavior", "current_action", "version", "strict")}
    runs = {"b": {**part, "version": version, "completed_actions": lines}}
    empty = {"current_action": "mini.shape.initialize_project", "strict": True, "completed_actions": [], "version": 1}
    (project / "workflow_state.json").write_text(json.dumps({**empty, "runs": runs}), encoding="utf-8")
    return project


def _other_project(project: Path) -> Path:
    return project.rename(project.with_name("bank"))


def _more_actions(project: Path) -> Path:
    """A further completion, with the proof of the first."""
    file = project / "workflow_state.json"
    state = json.loads(file.read_text(encoding="utf-8"))
    first = state["completed_actions"][-1]
    forged = {**first, "action_state": "mini.shape.build_knowledge", "version": first["version"] + 1}
    state["completed_actions"].append(forged)
    state["current_action"], state["version"] = "mini.code.gather_context", forged["version"]
    file.write_text(json.dumps(state), encoding="utf-8")
    return project


MOVED = """state = replace(state, '"current":["shape","build_knowledge"]', '"current":["code","gather_context"]')"""
"""The pointer behind a gate that is open."""
EDITS = {
    "the latest completions": (
        'UPDATE workflow_latest SET body = replace(body, \'"approval":"claimed"\', \'"approval":"proven","how":"cli"\')'
    ),
    "the pointer": "UPDATE workflow_runs SET state = replace(state, 'gather_context', 'build_knowledge')",
    "the history and the latest completions": (
        'UPDATE workflow_entries SET body = replace(body, \'"approval":"claimed"\', '
        '\'"approval":"proven","how":"cli"\')'
    ),
    "the preset": (
        'UPDATE workflow_runs SET state = replace(state, \'"rejections":0\', \'"rejections":0,"depth":'
        '{"name":"short","left_out":["shape.gather_context","shape.build_knowledge"],"confirmed":true}\')'
    ),
    "strictness": "UPDATE workflow_runs SET state = replace(state, ',\"strict\":true', '')",
}


async def test_an_edited_database_proves_nothing_and_is_found(
    tmp_path: Path, project: Path, ada: Path, attack: Attack, capsys: pytest.CaptureFixture[str]
) -> None:
    attack(door="state.db", attempt="set completions to proven, move the pointer, forge receipts, rewrite the log")
    folder = mini(tmp_path)
    async with served(project, bot=folder, name="mini") as bot:
        await bot.call("shape_gather_context")
        assert (await bot.call("close_current_action"))["approval"] == "claimed"
    async with served(project, bot=folder, name="mini", strict=True) as bot:
        await bot.call("shape_gather_context")
        await bot.call("tool")
    kept = project_state(project).read_bytes()
    for name, statement in EDITS.items():
        project_state(project).write_bytes(kept)
        edit(project, statement)
        if "history" in name:
            edit(project, EDITS["the latest completions"])
        async with served(project, bot=folder, name="mini", strict=True) as bot:
            assert code_of(await bot.call("code_gather_context")) == "STATE_CONFLICT", name
            assert proven(bot) == [], name
    project_state(project).write_bytes(kept)


def verified(project: Path, capsys: pytest.CaptureFixture[str], *more: str) -> set[tuple[str, str]]:
    """What `trysquare verify` finds."""
    capsys.readouterr()
    status = main(["verify", "--json", "--project", str(project), *more])
    report = json.loads(capsys.readouterr().out)
    found = {(each["check"], each["where"]) for each in report["problems"]}
    assert (status, report["holds"]) == ((1, False) if found else (0, True))
    return found


async def test_verify_finds_each_forgery(
    tmp_path: Path, project: Path, ada: Path, attack: Attack, capsys: pytest.CaptureFixture[str]
) -> None:
    attack(door="trysquare verify", attempt="pass CI with an edited database, receipt or state file")
    folder = mini(tmp_path)
    bots = ("--bot", str(folder))
    async with served(project, bot=folder, name="mini", strict=True) as bot:
        await closed_by(bot, project, ada)
    assert verified(project, capsys, *bots) == set()
    fresh = clone(project, tmp_path / "ci" / "shop")
    assert verified(fresh, capsys, *bots) == set()
    _edited_receipt(fresh)
    assert {check for check, _ in verified(fresh, capsys, *bots)} == {"signatures", "gates"}
    kept = project_state(project).read_bytes()
    for statement, expected in (
        ("UPDATE workflow_latest SET body = replace(body, 'ada@', 'eve@')", {"signatures", "records", "gates"}),
        ("UPDATE workflow_runs SET state = replace(state, 'build_knowledge', 'gather_context')", {"records"}),
        (f"UPDATE workflow_runs SET {MOVED}; UPDATE workflow_events SET {MOVED}", {"gates"}),
        ("UPDATE receipts SET by = 'eve@example.org'", {"signatures", "receipts"}),
        ("UPDATE receipts SET statement = NULL, digest = 'x'", {"signatures", "receipts"}),
        ("UPDATE audit SET body = replace(body, 'ada@', 'eve@')", {"records", "receipts"}),
        ("INSERT INTO receipts SELECT 99, tool, principal, 'other', question, approved, 'alice', how, at, 0, '',"
         " NULL, NULL FROM receipts", {"receipts"}),
    ):  # fmt: skip
        for part in statement.split(";"):
            edit(project, part)
        assert {check for check, _ in verified(project, capsys, *bots)} == expected, statement
        project_state(project).write_bytes(kept)
    allow(project, eve=make_key(tmp_path, "eve@example.org"))
    assert {check for check, _ in verified(project, capsys, *bots)} >= {"signatures"}


async def test_what_a_preset_takes_away_is_signed_and_its_receipt_travels(
    tmp_path: Path, project: Path, ada: Path, attack: Attack, capsys: pytest.CaptureFixture[str]
) -> None:
    attack(door="trysquare verify", attempt="a preset that takes away proofs, with its receipt removed")
    folder = mini(tmp_path)
    config = folder / "bot_config.json"
    presets = {"short": {"actions": ["build_knowledge"], "drops_proof": True}}
    config.write_text(json.dumps({**json.loads(config.read_text(encoding="utf-8")), "presets": presets}))
    async with served(project, bot=folder, name="mini", strict=True) as bot:
        waiting = await bot.call("tool", confirm=True, preset="short")
        while code_of(waiting) == "CONSENT_REQUIRED":
            assert sign_code(project, waiting["approval"]["code"], ada) == 0
            waiting = await bot.call("tool", confirm=True, preset="short")
        assert (await bot.call("tool"))["action"] == "build_knowledge"
    assert verified(project, capsys, "--bot", str(folder)) == set()
    for receipt in (project / "workflow_receipts").glob("*.json"):
        receipt.unlink()
    async with served(project, bot=folder, name="mini", strict=True) as bot:
        assert (await bot.call("tool"))["action"] != "build_knowledge"
        assert proven(bot) == []
