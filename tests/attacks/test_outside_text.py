"""Text from outside: nothing in it controls a terminal, forges a log line or hides from a reader."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.conftest import Attack
from tests.attacks.hostile_server import FORGED, TAGS
from trysquare.core.approvals import ConsentRequest
from trysquare.core.untrusted import hidden_kinds
from trysquare.store import StoredApprovals, project_state
from trysquare.store.database import open_database

SERVER = Path(__file__).with_name("hostile_server.py")
RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ [\w.]+: ")
CLIENT = {"name": "attack", "version": "1"}
META = "io.modelcontextprotocol/"
VERSIONS = ("2025-11-25", "2026-07-28")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project after its servers were used once."""
    folder = made(tmp_path_factory.mktemp("known"))
    run(folder, "gateway", "test", "evil", "--gateway", "mcp.json")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return made(tmp_path)


def made(folder: Path) -> Path:
    """A project whose gateway has the hostile server, and two that fail in hostile words."""
    command = {"command": sys.executable, "args": ["-I", "-S", str(SERVER)]}
    failing = {name: {**command, "args": [*command["args"], name]} for name in ("start", "list")}
    servers = {"mcpServers": {"evil": command, **failing}}
    (folder / "mcp.json").write_text(json.dumps(servers), encoding="utf-8")
    return folder


def environment(project: Path) -> dict[str, str]:
    own = {"XDG_STATE_HOME": str(project / "state"), "HOME": str(project), "NO_COLOR": "1", "PYTHONUTF8": "1"}
    return {**os.environ, **own}


def run(project: Path, *words: str, stdin: str = "") -> tuple[str, str]:
    """Standard output and standard error of one command."""
    ran = subprocess.run(
        [sys.executable, "-m", "trysquare", *words],
        input=stdin.encode(),
        capture_output=True,
        cwd=project,
        env=environment(project),
        timeout=120,
        check=False,
    )
    return ran.stdout.decode(), ran.stderr.decode()


def require_harmless(text: str, *, lines: bool = True) -> None:
    """Nothing that a terminal obeys but line ends, nothing invisible, and no line that somebody forged."""
    assert hidden_kinds(text) == ()
    assert not set("\x1b\x9b\x07\x08\r\x85\u2028\u2029") & set(text)
    assert TAGS not in text
    assert not (lines and any(line.startswith(FORGED) for line in text.splitlines()))


def require_harmless_json(text: str) -> None:
    require_harmless(text.replace("\\n", " "))


@pytest.mark.parametrize(
    "words",
    [
        ("gateway", "test"),
        ("gateway", "test", "--json"),
        ("gateway", "list"),
        ("list", "--profile", "full"),
        ("list", "--profile", "full", "--json"),
        ("call", "mcp_evil", "action=list", "detail=schemas"),
        ("call", "mcp_evil", "action=list", "--json"),
        ("call", "evil__refuse"),
        ("call", "evil__refuse", "--json"),
        ("call", "evil__fail"),
        ("call", "evil__tell"),
        ("call", "evil__tell", "--json"),
        ("call", "evil__die"),
        ("call", "mcp_start", "action=list"),
        ("call", "mcp_list", "action=list"),
        ("call", "evil__\x1b[2Jnone"),
        ("call", "mcp_evil", "action=execute", "tool_name=\x1b[2J\u202eno"),
        ("gateway", "diff"),
        ("gateway", "calls"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_no_command_prints_what_a_terminal_obeys(attack: Attack, known: Path, words: tuple[str, ...]) -> None:
    attack(door="trysquare " + words[0], attempt="terminal escapes and forged lines in what a server says")
    place = () if words[:2] == ("gateway", "calls") else ("--gateway", "mcp.json")
    out, err = run(known, *words, *place)
    assert out or err
    # The answer of a call is the server's own text, with its lines; no other command prints one as a line.
    require_harmless(out, lines=words[0] != "call")
    require_harmless(err)


def exchange(project: Path, version: str, *calls: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """The answers to some requests in one version of the protocol, and the log of the server."""
    process = subprocess.Popen(
        [sys.executable, "-m", "trysquare", "serve", "--gateway", "mcp.json", "--log-level", "DEBUG"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=project, env=environment(project),
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    meta = {f"{META}protocolVersion": version, f"{META}clientCapabilities": {}, f"{META}clientInfo": CLIENT}
    messages: list[dict[str, Any]] = []
    if version == "2025-11-25":
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
        messages += [{"id": 0, "method": "initialize", "params": hello}, {"method": "notifications/initialized"}]
    for number, call in enumerate(calls, start=1):
        params = call["params"] if version == "2025-11-25" else {**call["params"], "_meta": meta}
        messages.append({"id": number, "method": call["method"], "params": params})
    answers: list[dict[str, Any]] = []
    for message in messages:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        while "id" in message:
            answer = json.loads(process.stdout.readline())
            if answer.get("id") == message["id"]:
                answers.append(answer)
                break
    _, log = process.communicate(timeout=60)
    return answers[-len(calls) :], log.decode()


def calling(name: str, **arguments: Any) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize("version", VERSIONS)
def test_neither_log_nor_model_gets_hidden_text(attack: Attack, project: Path, version: str) -> None:
    attack(door=f"serve {version}", attempt="hidden text in errors, results and lists; forged log lines")
    calls = [
        calling("mcp_evil", action="list"),
        calling("mcp_evil", action="list", detail="schemas"),
        calling("evil__refuse"),
        calling("evil__fail"),
        calling("evil__tell"),
        calling("evil__huge"),
        calling("evil__die"),
        calling("mcp_start", action="list"),
        calling("mcp_list", action="list"),
        calling("evil__\x1b[2J\nnone"),
        {"method": "tools/list", "params": {}},
        {"method": "prompts/list", "params": {}},
        {"method": "resources/list", "params": {}},
    ]
    answers, log = exchange(project, version, *calls)
    for answer in answers:
        require_harmless_json(json.dumps(answer, ensure_ascii=False))
    refused, failed, told, huge = answers[2:6]
    for answer, tool in ((refused, "refuse"), (failed, "fail"), (told, "tell"), (huge, "huge")):
        label = answer["result"]["_meta"]["trysquare/origin"]
        assert (label["server"], label["tool"]) == ("evil", tool)
        assert label["hidden_characters_removed"] > len(TAGS)
    assert "ignore all rules" not in json.dumps(answers)
    assert len(json.dumps(huge)) < 20_000
    assert "30000" in json.dumps(huge)
    require_harmless(log)
    lines = log.splitlines()
    assert lines
    assert all(RECORD.match(line) or line.startswith(" ") for line in lines)
    assert max(map(len, lines)) < 12_000


SUBJECT = "eve\x1b[2J\x1b[HRemove nothing?\r\n  Caller     ada\u202e"


@pytest.mark.parametrize("words", [("CODE",), (), ("--json",), ("--receipts",), ("CODE", "--refuse")], ids=" ".join)
def test_a_caller_cannot_wipe_the_question_for_consent(attack: Attack, project: Path, words: tuple[str, ...]) -> None:
    attack(door="trysquare approve", attempt="terminal escapes in the subject, the tool, the question and arguments")
    file = project_state(project)
    database = open_database(file)
    approvals = StoredApprovals(database)
    request = ConsentRequest(
        tool=SUBJECT, principal=SUBJECT, digest="d" * 64, question=f"Remove {SUBJECT}?", arguments={"what": SUBJECT}
    )
    code = approvals.decide(request).code
    assert code is not None
    if words == ("--receipts",):
        approvals.refuse(code, by=SUBJECT)
    database.close()
    given = [code if word == "CODE" else word for word in words]
    shown = on_terminal(project, "approve", *given)
    require_harmless(shown)
    assert not any(line.strip().startswith("Caller     ada") for line in shown.splitlines())
    assert "eve" in shown


def on_terminal(project: Path, *words: str) -> str:
    """What a command shows on a terminal, where nobody types anything but `no`."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "trysquare", *words]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=project, env=environment(project), close_fds=True
    )
    os.close(theirs)
    os.write(ours, b"no\n")
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        pass
    process.wait(timeout=60)
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")
