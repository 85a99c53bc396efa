"""git: what callers see, and that neither an argument nor a repository makes it run or reach anything else."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from tests.workbench.workplace import Workplace, git, make_repository, need_sandbox, workplace
from trysquare import call_tool
from trysquare.app import open_app
from trysquare.settings import Settings
from trysquare.testing import ScriptedCaller, accept, decline, make_context

OPTIONS = ["--output=x", "-x", "--upload-pack=touch x", "--exec=touch x", "-", "--", "--help", "-c core.pager=x"]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[Workplace]:
    need_sandbox()
    make_repository(tmp_path / "work")
    async with workplace(tmp_path / "work") as opened:
        yield opened


async def test_changes_are_shown_added_and_committed(place: Workplace) -> None:
    place.write("a.txt", "two\n")
    place.write("src/b.txt", "new\n")
    status = await place.done("git", action="status")
    assert (status["output"], status["data"]) == snapshot(
        ("## main\n M a.txt\n?? src/", {"branch": "main", "clean": False})
    )
    diff = await place.done("git", action="diff", files=["a.txt"])
    assert diff["output"].endswith("@@ -1 +1 @@\n-one\n+two\n")
    assert (await place.done("git", action="add", files=["src/b.txt"]))["output"] == snapshot(
        "## main\n M a.txt\nA  src/b.txt"
    )
    await place.done("git", action="commit", message='Say "two"\n\nBecause one is not enough', files=["a.txt"])
    assert git(place.root, "log", "-1", "--format=%an: %B").strip() == 'Ann: Say "two"\n\nBecause one is not enough'
    # What was staged beside it stays out of the commit.
    assert git(place.root, "status", "--porcelain") == "A  src/b.txt\n"


async def test_branches_are_made_and_changed_and_the_files_that_differ_are_named(place: Workplace) -> None:
    await place.done("git", action="create_branch", branch="feature/two")
    place.write("b.txt", "b\n")
    await place.done("git", action="commit", message="b", files=["b.txt"])
    changed = await place.done("git", action="checkout", branch="main")
    assert (changed["output"], changed["modified_files"]) == ("Switched to branch 'main'", ["b.txt"])
    assert (await place.done("git", action="log", base="feature/two", count=1))["output"].endswith(" Ann: b\n")
    assert "+b" in (await place.done("git", action="show", base="feature/two"))["output"]
    assert (await place.done("git", action="blame", path="a.txt"))["output"].endswith(" 1) one\n")
    code, message = await place.refused("git", action="checkout", branch="nowhere")
    assert (code, message) == ("COMMAND_FAILED", "git failed: fatal: invalid reference: nowhere")


@pytest.mark.parametrize("option", OPTIONS)
async def test_an_option_is_no_name_of_anything(place: Workplace, option: str) -> None:
    before = sorted(os.listdir(place.root))
    place = replace(place, agrees=True)
    for call in (
        {"action": "diff", "base": option},
        {"action": "log", "base": option},
        {"action": "show", "base": option},
        {"action": "checkout", "branch": option},
        {"action": "create_branch", "branch": option},
        {"action": "create_branch", "branch": "fine", "base": option},
        {"action": "push", "remote": option},
        {"action": "push", "branch": option},
    ):
        assert (await place.refused("git", **call))[0] == "VALIDATION_INVALID_PARAM", call
    assert (await place.refused("git", action="add", files=[option]))[0] == "COMMAND_FAILED"
    assert sorted({*os.listdir(place.root)} - {".trysquare"}) == before
    assert git(place.root, "branch", "--format=%(refname)") == "refs/heads/main\n"


async def test_files_with_names_like_options_and_with_line_breaks_are_files(place: Workplace) -> None:
    for name in ("-rf", "--output=x", "a\nb", ":(exclude)a.txt", "*"):
        place.write(name, "x\n")
    await place.done("git", action="add", files=["-rf", "a\nb"])
    assert git(place.root, "diff", "--cached", "--name-only", "-z") == "-rf\0a\nb\0"
    await place.done("git", action="commit", message="odd", files=["--output=x", ":(exclude)a.txt", "*"])
    names = git(place.root, "show", "--name-only", "--format=", "-z").strip("\0").split("\0")
    assert names == ["*", "--output=x", ":(exclude)a.txt"]


async def test_hooks_filters_and_drivers_of_the_repository_do_no_harm(place: Workplace, tmp_path: Path) -> None:
    harm = tmp_path / "harm"
    hook = place.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {harm} hooked\n", encoding="utf-8")
    hook.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "core.pager", "filter.evil.clean", "diff.evil.textconv"):
        git(place.root, "config", name, f"touch {harm}; cat")
    place.write(".gitattributes", "*.txt filter=evil diff=evil\n")
    place.write("a.txt", "two\n")
    for call in ({"action": "status"}, {"action": "diff"}, {"action": "add", "files": ["a.txt"]}, {"action": "show"}):
        await place.send("git", **call)
    await place.done("git", action="commit", message="two", files=["a.txt"])
    assert not harm.exists()
    assert not (place.root / "hooked").exists()


async def test_a_file_that_leads_to_another_repository_is_not_followed(tmp_path: Path) -> None:
    need_sandbox()
    make_repository(tmp_path / "other")
    work = tmp_path / "work"
    work.mkdir()
    (work / ".git").write_text(f"gitdir: {tmp_path / 'other' / '.git'}\n", encoding="utf-8")
    async with workplace(work) as place:
        code, message = await place.refused("git", action="status")
    assert code == "FILE_NOT_ALLOWED"
    assert message.startswith("`.git` ")


async def test_a_worktree_of_a_repository_that_knows_it_works(tmp_path: Path) -> None:
    need_sandbox()
    make_repository(tmp_path / "main")
    git(tmp_path / "main", "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "work"))
    async with workplace(tmp_path / "work") as place:
        place.write("b.txt", "b\n")
        await place.done("git", action="commit", message="on the side", files=["b.txt"])
    assert git(tmp_path / "main", "log", "-1", "--format=%s", "side") == "on the side\n"


async def test_a_folder_that_is_no_repository_is_reported_even_inside_of_one(tmp_path: Path) -> None:
    make_repository(tmp_path)
    async with workplace(tmp_path / "inside") as place:
        code, _ = await place.refused("git", action="status")
    assert code == "FILE_NOT_FOUND"


async def test_a_push_asks_the_user_and_other_actions_do_not(tmp_path: Path) -> None:
    need_sandbox()
    work = tmp_path / "work"
    make_repository(work)
    git(work, "init", "--quiet", "--bare", "remote.git")
    git(work, "remote", "add", "origin", "remote.git")
    async with open_app(Settings.model_validate({"project": work, "workbench": [work]})) as app:
        asked = ScriptedCaller([decline()])
        refused = await call_tool(app.toolset, "git", {"action": "push"}, make_context(caller=asked))
        assert refused.to_json()["error"]["code"] == "CONSENT_REFUSED"
        assert not git(work / "remote.git", "branch")
        assert (await call_tool(app.toolset, "git", {"action": "status"}, make_context())).success
        agreed = ScriptedCaller([accept(approve=True)])
        pushed = await call_tool(app.toolset, "git", {"action": "push"}, make_context(caller=agreed))
    assert pushed.success, pushed.to_json()
    assert git(work / "remote.git", "log", "-1", "--format=%s", "main") == "first\n"


async def test_a_push_by_settings_that_run_programs_is_refused(place: Workplace) -> None:
    git(place.root, "remote", "add", "origin", "remote.git")
    git(place.root, "config", "credential.helper", "!touch /tmp/harm")
    code, message = await replace(place, agrees=True).refused("git", action="push")
    assert code == "COMMAND_NOT_ALLOWED"
    assert "(credential.helper)" in message
