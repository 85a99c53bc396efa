"""A denied path against every way to its contents: the arguments of tools, and what their answers hold."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.agents.scripted import GIVE_UP, ScriptedModel, call, definition, run_script
from tests.attacks.conftest import Attack
from tests.workbench.workplace import need_sandbox, workplace
from trysquare import tool
from trysquare.agents import AgentRequest
from trysquare.agents.journal import NullJournal
from trysquare.agents.policy import Policy, Rule
from trysquare.agents.runner import AgentEnvironment, run_request
from trysquare.app import agent_environment
from trysquare.core.json import JsonObject
from trysquare.settings import Settings

SECRET = "topsecret-4711"
KEEPER = """
name = "keeper"
description = "Keeps a secret."
instructions = "Do the task."
workspace = "WORKSPACE"
[tools]
optional = ["*"]
[policy]
default = "allow"
rules = [{ effect = "deny", paths = [".env", "vault", "**/*.pem"] }]
"""


def git(project: Path, *words: str) -> str:
    author = ("-c", "user.name=T", "-c", "user.email=t@example.org")
    return subprocess.run(
        ["git", *author, *words], cwd=project, check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository whose secrets are committed, and changed since."""
    project = tmp_path / "project"
    for name in (".env", "vault/deep/key.txt", "src/server.pem", "a.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        text = "API_KEY = 1\n" if name == "a.py" else f"API_KEY={SECRET}\n"
        (project / name).write_text(text, encoding="utf-8")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "All of it")
    for name in (".env", "vault/deep/key.txt", "a.py"):
        with (project / name).open("a", encoding="utf-8") as file:
            file.write(f"# changed {SECRET if name != 'a.py' else ''}\n")
    (project / "test_a.py").write_text(
        "import pathlib, subprocess\n\n\ndef test_a():\n"
        "    print(pathlib.Path('.env').read_text())\n"
        "    print(subprocess.run(['git', 'show', 'HEAD:.env'], capture_output=True, text=True))\n"
        "    assert False\n",
        encoding="utf-8",
    )
    return project


async def told(project: Path, calls: list[JsonObject], *, workspace: str = "project") -> list[str]:
    """What an agent whose policy denies the paths reads in answer to its calls."""
    folder = project / "agents"
    folder.mkdir(exist_ok=True)
    (folder / "keeper.toml").write_text(KEEPER.replace("WORKSPACE", workspace), encoding="utf-8")
    model = ScriptedModel([calls, GIVE_UP])

    @asynccontextmanager
    async def opened(spec: str | None) -> AsyncGenerator[ScriptedModel]:
        yield model

    settings = Settings(project=project)
    with agent_environment(settings, {}) as around:
        scripted = AgentEnvironment(
            settings=settings, open_toolset=around.open_toolset, approvals=around.approvals, open_model=opened
        )
        await run_request(AgentRequest(agent="keeper", task="Look."), scripted, NullJournal())
    texts = [message.text for message in model.messages() if message.role == "tool"]
    assert len(texts) == len(calls)
    return texts


NAMING = [
    call("search", action="grep", pattern="API_KEY"),
    call("search", action="find_files", pattern="**"),
    call("search", action="find_definition", name="API_KEY"),
    call("navigate", action="list_directory", directory=".", show_hidden=True),
    call("navigate", action="get_tree", directory=".", show_hidden=True, max_depth=9),
    call("git", action="status"),
    call("git", action="diff"),
    call("git", action="diff", base="HEAD"),
    call("git", action="diff", files=["src", "a.py"]),
    call("git", action="show"),
    call("git", action="add", files=["."]),
]
READING = [
    call("file", action="read", path=".env"),
    call("file", action="read", path="vault/../.env"),
    call("file", action="read", path="./vault/deep/key.txt"),
    call("file", action="read", path=".ENV"),
    call("code_edit", action="get_lines", path="src/server.pem", start_line=1, end_line=2),
    call("search", action="find_in_file", path=".env", pattern="."),
    call("search", action="grep", pattern=".", directory="vault"),
    call("git", action="blame", path=".env"),
    call("git", action="diff", files=["vault"]),
    call("bash", command="cat .env"),
    call("bash", command="cat .e*"),
    call("bash", command="grep -r API_KEY . ; ls -a; find . -name '*.pem' -exec cat {} +"),
    call("bash", command="mv vault vault2 ; cat vault2/deep/key.txt"),
    call("bash", command="mv src src2 ; cat src2/*.pem"),
    call("bash", command="git show HEAD:src/server.pem ; git log -p"),
    call("bash", command="python3 -c \"print(open('.e'+'nv').read())\""),
    call("test", type="python"),
]


def brief(made: JsonObject) -> str:
    return " ".join(map(str, (made["name"], *made["args"].values())))


@pytest.mark.parametrize("made", READING, ids=brief)
async def test_no_tool_shows_what_a_denied_path_holds(attack: Attack, project: Path, made: JsonObject) -> None:
    attack(door="an agent's run, deny .env, vault, **/*.pem", attempt=brief(made))
    [text] = await told(project, [made])
    assert SECRET not in text


@pytest.mark.parametrize("made", NAMING, ids=brief)
async def test_no_listing_names_or_shows_a_denied_path(attack: Attack, project: Path, made: JsonObject) -> None:
    attack(door="an agent's run, deny .env, vault, **/*.pem", attempt=brief(made))
    [text] = await told(project, [made])
    assert not any(word in text for word in (SECRET, ".env", "vault", ".pem"))
    assert "a.py" in text or made["args"]["action"] == "find_definition"


async def test_a_file_that_git_knows_by_its_id_alone_is_not_shown(attack: Attack, project: Path) -> None:
    attack(door="an agent's run, deny .env", attempt="git show and git diff of the file's object id")
    blob, other = git(project, "rev-parse", "HEAD:.env"), git(project, "rev-parse", "HEAD:a.py")
    references = (blob, f"{blob}..{other}", f"{other}..{blob}", f"{blob}...{other}", f"{blob[:10]}", f"HEAD..{blob}")
    made = [call("git", action=action, base=base) for action in ("show", "diff") for base in references]
    assert not any(SECRET in text for text in await told(project, made))


async def test_an_agent_in_a_copy_does_not_reach_the_original(attack: Attack, project: Path) -> None:
    attack(door="an agent in a copy, deny .env", attempt="a command that names the original by its place")
    joined = f"{project.parent}' + '/project/"
    code = f"import pathlib; print(pathlib.Path('{joined}.env').read_text(), pathlib.Path('.env').exists())"
    texts = await told(
        project,
        [
            call("bash", command=f'python3 -c "{code}"'),
            call("bash", command=f"git -C {project} show HEAD:src/server.pem"),
            call("bash", command="ls -a"),
        ],
        workspace="copy",
    )
    assert not any(SECRET in text for text in texts)


@pytest.mark.parametrize("way", ["bubblewrap", "landlock"])
async def test_a_command_does_not_read_what_is_hidden(attack: Attack, project: Path, way: str) -> None:
    attack(door=f"the workbench's bash in {way}", attempt="cat, a link, a move and git objects")
    lines = [
        "cat .env vault/deep/key.txt src/server.pem",
        "ln -s .env vault.txt; cat vault.txt; ln .env hard; cat hard",
        "mv .env x; cat x; mv vault y; cat y/deep/key.txt; mv src z; cat z/server.pem",
        "git show HEAD:.env; git cat-file --batch-all-objects --batch; cat .git/objects/*/* | strings",
        "cp -r . /tmp/all; cat /tmp/all/.env; tar c . | strings",
    ]
    need_sandbox(way)
    async with workplace(project, sandboxes=(way,), hidden=(".env", "vault", "**/*.pem")) as place:
        for line in lines:
            result = await place.send("bash", command=line)
            assert SECRET not in str(result), line
        shown = await place.send("bash", command="cat a.py")
        assert "API_KEY" in str(shown)
    assert SECRET in (project / ".env").read_text(encoding="utf-8")
    assert SECRET in (project / "vault/deep/key.txt").read_text(encoding="utf-8")


async def test_a_path_that_is_denied_to_one_tool_is_not_in_its_answers(attack: Attack, project: Path) -> None:
    attack(door="the workbench, search=.env", attempt="grep, while file may read it")
    async with workplace(project, hidden=("search=.env", "search=vault", "search=**/*.pem")) as place:
        assert SECRET not in str(await place.send("search", action="grep", pattern="API_KEY"))
        assert SECRET in str(await place.send("file", action="read", path=".env"))


FOREIGN: list[dict[str, Any]] = [
    {"file_path": ".env"},
    {"dir": "vault"},
    {"cwd": "./vault/deep"},
    {"options": {"where": ["a.py", "x/../.env"]}},
    {"uri": "file://ROOT/.env"},
    {"uri": "file://ROOT/%2Eenv"},
    {"p": "ROOT/vault/deep/key.txt"},
    {"p": "link"},
    {"p": "SRC\\..\\.env"},
    {"cmd": ".ENV"},
    {"command": "cat ./.env"},
]


@pytest.mark.parametrize("arguments", FOREIGN, ids=lambda each: str(each))
async def test_a_tool_of_somebody_else_does_not_get_a_denied_path(
    attack: Attack, project: Path, arguments: dict[str, Any]
) -> None:
    attack(door="a tool without marks, deny .env and vault", attempt=str(arguments))
    os.symlink(".env", project / "link")
    seen: list[Any] = []

    async def fetch(given: dict[str, Any]) -> str:
        """Fetch something."""
        seen.append(given)
        return "fetched"

    policy = Policy(default="allow", rules=(Rule(effect="deny", paths=(".env", "vault")),))
    given = _placed(arguments, str(project))
    model = ScriptedModel([call("fetch", given=given), call("fetch", given={"p": "a.py"}), GIVE_UP])
    await run_script(model, [tool(fetch)], agent=definition(policy=policy), root=project)
    assert seen == [{"p": "a.py"}]


def _placed(value: Any, root: str) -> Any:
    if isinstance(value, dict):
        return {name: _placed(part, root) for name, part in value.items()}
    if isinstance(value, list):
        return [_placed(part, root) for part in value]
    return value.replace("ROOT", root)
