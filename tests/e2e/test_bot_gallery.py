"""Every bot of the gallery, and one written from the docs, walked from the first call to the end by a real client.

Each document is built, rendered, edited by hand in its page, carried back, validated and closed; in between, the server
is killed in one combination of protocol version and profile for each, and follows another in all others, in memory.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from mcp import Client, StdioServerParameters

from tests.bots.incident_bot import FILES, write_incident_bot
from tests.bots.served_bots import Person, served
from tests.e2e.stdio_process import REPOSITORY
from tests.support import told
from trysquare.bots.definition.check import check_folder
from trysquare.bots.definition.scaffold import GALLERY, TEMPLATES, write_new_bot
from trysquare.cli.main import main

OWN = "own"
MODES = ("legacy", "2026-07-28")
PROFILES = ("full", "levels", "gateway")
CLEAN = {"validate_rules": {"requires_clean": True}}
EDITS = {
    "checklist": ("(TBD)", "(Lin)"),
    "release": ("[ ] The tests pass", "[x] The tests pass"),
    "incident": ("Roll back", "Roll back the release"),
    "spec": ("Export of reports", "Export of all reports"),
    "story": ("Guest books a table", "Guest books two tables"),
    OWN: ("(TBD)", "(Lin)"),
}
WANTED = {
    **{name: new for name, (_, new) in EDITS.items()},
    "checklist": "Lin",
    "release": "done: true",
    OWN: "owner: Lin",
}


class Walk(NamedTuple):
    template: str
    mode: str
    profile: str


WALKS = [
    Walk(template, mode, profile)
    for template, (mode, profile) in zip((*TEMPLATES, OWN), itertools.product(MODES, PROFILES), strict=True)
]


def server(project: Path, bot: Path, profile: str) -> StdioServerParameters:
    words = ["-m", "trysquare", "serve", "--bot", str(bot), "--project", str(project), "--profile", profile]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "XDG_STATE_HOME": str(project.parent / "user")}
    return StdioServerParameters(command=sys.executable, args=words, cwd=project, env=environment)


def kill_server(project: Path) -> None:
    """Kill the server of this project, as a crash would."""
    ours = [each for each in psutil.Process().children(recursive=True) if str(project) in each.cmdline()]
    assert ours
    for each in ours:
        each.kill()


async def call(client: Client, tool: str, **parameters: Any) -> dict[str, Any]:
    return told(await client.call_tool(tool, {"parameters": parameters} if parameters else {}))


def write_bot(walk: Walk, folder: Path) -> str:
    if walk.template == OWN:
        write_incident_bot(folder, {"bot_config.json": {"name": "incident_bot", "gates": CLEAN}})
        return "incident_bot"
    write_new_bot(folder, f"my_{walk.template}", walk.template)
    return f"my_{walk.template}"


async def build(client: Client, name: str, project: Path) -> str:
    """Open the bot, write its document as the template says, and close the action."""
    listed = {each.name for each in (await client.list_tools()).tools}
    assert {f"{name}_tool", f"{name}_close_current_action"} <= listed
    built = await call(client, f"{name}_tool")
    assert built["action"] == "build_knowledge"
    [output] = built["data"]["documents"]
    part = next(each for key, each in built["data"]["instructions"].items() if key.startswith("knowledge:"))
    (project / output).parent.mkdir(parents=True, exist_ok=True)
    (project / output).write_text(part["template"], encoding="utf-8")
    closed = await call(client, f"{name}_close_current_action", expected_action="build_knowledge")
    assert closed["next_action"] == "render_output"
    return output


async def finish(client: Client, name: str, project: Path, output: str, walk: Walk, person: Person) -> None:
    """Render the page, edit it, carry the edit back, validate, and close everything."""
    rendered = await call(client, f"{name}_tool")
    [page] = [each["path"] for each in rendered["data"]["files"]]
    await call(client, f"{name}_close_current_action", expected_action="render_output")
    old, new = EDITS[walk.template]
    text = (project / page).read_text(encoding="utf-8")
    assert old in text
    (project / page).write_text(text.replace(old, new, 1), encoding="utf-8")
    carried = await call(client, f"{name}_tool")
    assert carried["data"]["files"][0]["conflicts"] == []
    assert WANTED[walk.template] in (project / output).read_text(encoding="utf-8")
    await call(client, f"{name}_close_current_action", expected_action="synchronize_output")
    checked = await call(client, f"{name}_tool")
    assert (checked["data"]["clean"], checked["data"]["documents"]) == (True, {output: "valid"})
    ended = await call(client, f"{name}_close_current_action", expected_action="validate_rules")
    assert ended["workflow_complete"] is True
    assert ended["approval"] == ("confirmed" if walk.template == "release" else "claimed")
    assert len(person.asked) == (1 if walk.template == "release" else 0)


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: "-".join(walk))
async def test_a_bot_is_walked_to_its_end_though_its_server_is_killed(walk: Walk, tmp_path: Path) -> None:
    project, bot, person = tmp_path / "project", tmp_path / "bot", Person()
    project.mkdir()
    name = write_bot(walk, bot)
    async with asyncio.timeout(110):
        async with Client(server(project, bot, walk.profile), mode=walk.mode) as client:
            output = await build(client, name, project)
            kill_server(project)
        async with Client(server(project, bot, walk.profile), mode=walk.mode, elicitation_callback=person) as client:  # pyright: ignore[reportArgumentType]
            await finish(client, name, project, output, walk, person)


EVERYWHERE = [Walk(*each) for each in itertools.product((*TEMPLATES, OWN), MODES, PROFILES) if each not in WALKS]


@pytest.mark.parametrize("walk", EVERYWHERE, ids=lambda walk: "-".join(walk))
async def test_a_bot_is_walked_in_every_version_and_profile(walk: Walk, tmp_path: Path) -> None:
    project, bot, person = tmp_path / "project", tmp_path / "bot", Person()
    project.mkdir()
    name = write_bot(walk, bot)
    given: dict[str, Any] = {"bot": bot, "name": name, "mode": walk.mode, "profile": [walk.profile]}
    async with served(project, **given) as first:
        output = await build(first.client, name, project)
    async with served(project, **given, person=person) as second:
        await finish(second.client, name, project, output, walk, person)


@pytest.mark.parametrize(("mode", "profile"), [("legacy", "levels"), ("2026-07-28", "full")])
async def test_an_imported_list_is_walked_from_its_first_open_item_to_its_end(
    mode: str, profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    tasks = "# Move\n\n## Pack\n\n- [x] Books\n- [ ] Dishes\n\n## Drive\n\n- [ ] Load the van\n- [x] Rent a van\n"
    (project / "TODO.md").write_text(tasks, encoding="utf-8")
    monkeypatch.chdir(project)
    assert main(["bot", "import", "TODO.md", "--name", "move", "--into", "bots"]) == 0
    bot = project / "bots" / "move"
    async with asyncio.timeout(110):
        async with Client(server(project, bot, profile), mode=mode) as client:
            opened = await call(client, "move_tool")
            assert (opened["behavior"], opened["action"]) == ("pack", "dishes")
            assert "Dishes" in opened["data"]["instructions"]["base_instructions"]
            closed = await call(client, "move_close_current_action", expected_action="pack.dishes")
            assert (closed["next_behavior"], closed["next_action"]) == ("drive", "load_the_van")
            kill_server(project)
        async with Client(server(project, bot, profile), mode=mode) as client:
            opened = await call(client, "move_tool")
            assert (opened["behavior"], opened["action"]) == ("drive", "load_the_van")
            closed = await call(client, "move_close_current_action", expected_action="drive.load_the_van")
            assert closed["workflow_complete"] is True


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_bot_of_the_gallery_is_small_right_and_explains_each_file(template: str, tmp_path: Path) -> None:
    files = write_new_bot(tmp_path / "bot", "mine", template)
    assert 3 <= len(files) <= 8
    check = check_folder(tmp_path / "bot")
    assert check.findings == ()
    assert check.definition is not None
    assert check.definition.name == "mine"
    readme = (GALLERY / template / "README.md").read_text(encoding="utf-8")
    assert [path for path in files if path != "README.md" and f"`{path}`" not in readme] == []


def test_the_bot_from_the_docs_is_right(tmp_path: Path) -> None:
    assert check_folder(write_incident_bot(tmp_path)).findings == ()
    assert len(FILES) > 8
