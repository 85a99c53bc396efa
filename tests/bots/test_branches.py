"""A run for each branch or worktree, with the documents that git keeps apart."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.bots.bot_folders import write_bot
from tests.bots.git_checkouts import commit, git, repository
from tests.bots.served_bots import BotClient, served


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


@asynccontextmanager
async def at(project: Path, runs: str = "branch", **settings: Any) -> AsyncGenerator[BotClient]:
    """A bot with a run for each branch, or for each worktree."""
    config = {"name": "mini", "behaviors": ["shape", "code"], "runs": runs}
    folder = write_bot(project.parent / "bot", {"bot_config.json": config})
    async with served(project, bot=folder, name="mini", **settings) as client:
        yield client


async def close(client: BotClient, *, times: int = 1) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    for _ in range(times):
        await client.call("tool")
        answer = await client.call("close_current_action")
        assert answer["success"], answer
    return answer


async def where(client: BotClient) -> tuple[str, str]:
    answer = await client.call("tool")
    return answer["run"], f"{answer['behavior']}.{answer['action']}"


async def test_the_default_branch_is_the_main_run_and_a_new_branch_goes_on_from_it(repo: Path) -> None:
    async with at(repo) as client:
        await client.call("tool", confirm=True)
        await close(client)
        commit(repo)
        git(repo, "switch", "-q", "-c", "feature/x")
        assert (await where(client))[1] == "shape.build_knowledge"
        run = (await where(client))[0]
        assert run.startswith("branch.feature-x-")
        await close(client)
        assert (await where(client))[1].startswith("code.")
        commit(repo)
        git(repo, "switch", "-q", "main")
        found = await client.call("tool")
        assert (found["run"], found["action"]) == ("main", "build_knowledge")
        assert not found.get("warnings"), "another branch's file is no edit"
        commit(repo)
        git(repo, "switch", "-q", "feature/x")
        assert (await where(client))[0] == run
        assert (await where(client))[1].startswith("code.")


async def test_the_documents_of_a_branch_are_at_the_paths_of_the_definition(repo: Path) -> None:
    git(repo, "switch", "-q", "-c", "fix")
    async with at(repo) as client:
        await client.call("tool", confirm=True)
        answers = await client.call("tool", answers={"Who?": "Guests"})
        assert answers["run"] == "branch.fix"
    assert (repo / "docs/mini/clarification.json").is_file()
    assert "runs/" not in git(repo, "ls-files", "--others")


async def test_a_branch_without_the_file_begins_and_deletes_nothing(repo: Path) -> None:
    git(repo, "branch", "other")
    async with at(repo) as client:
        await client.call("tool", confirm=True)
        await close(client)
        commit(repo)
        git(repo, "switch", "-q", "other")
        assert "workflow_state.json" not in git(repo, "ls-files")
        before = await client.call("tool", confirm=True)
        assert before["run"] == "branch.other"
        assert before["action"] == "initialize_project"
        commit(repo)
        git(repo, "switch", "-q", "main")
        assert await where(client) == ("main", "shape.build_knowledge")


async def test_a_deleted_file_restarts_the_run_of_its_branch_alone(repo: Path) -> None:
    async with at(repo) as client:
        await client.call("tool", confirm=True)
        await close(client)
        commit(repo)
        git(repo, "switch", "-q", "-c", "fix")
        await close(client)
        (repo / "workflow_state.json").unlink()
        assert (await client.call("tool"))["action"] == "initialize_project"
        commit(repo)
        git(repo, "switch", "-q", "main")
        assert await where(client) == ("main", "shape.build_knowledge")


async def test_a_merge_brings_the_work_of_a_branch_along(repo: Path) -> None:
    async with at(repo) as client:
        await client.call("tool", confirm=True)
        commit(repo)
        git(repo, "switch", "-q", "-c", "fix")
        await client.call("code_gather_context")
        await client.call("close_current_action")
        commit(repo)
        git(repo, "switch", "-q", "main")
        await close(client)
        commit(repo)
        git(repo, "merge", "-q", "fix", fails=True)
        answer = await client.call("tool")
        assert answer["run"] == "main"
        assert "conflict markers" in answer["inconsistent"][0]
        assert {"shape.initialize_project", "shape.gather_context", "code.gather_context"} <= set(client.completed())


async def test_the_run_of_another_branch_is_not_worked_on_here(repo: Path) -> None:
    async with at(repo) as client:
        await client.call("tool", confirm=True)
        refused = await client.call("tool", run="branch.fix")
        assert refused["error"]["code"] == "VALIDATION_INVALID_PARAM"
        named = await client.call("tool", run="own")
        assert named["run"] == "own"


async def test_each_worktree_has_a_run_and_a_state_of_its_own(repo: Path) -> None:
    git(repo, "worktree", "add", "-q", str(repo.parent / "second"), "-b", "fix")
    async with at(repo, "worktree") as here, at(repo.parent / "second", "worktree") as there:
        for client in (here, there):
            await client.call("tool", confirm=True)
        await close(here)
        assert await where(here) == ("main", "shape.build_knowledge")
        assert await where(there) == ("worktree.second", "shape.gather_context")


async def test_a_detached_head_has_a_run_of_its_own_and_outside_of_git_is_main(repo: Path, tmp_path: Path) -> None:
    git(repo, "checkout", "-q", "--detach")
    async with at(repo) as client:
        assert (await client.call("tool", confirm=True))["run"].startswith("detached.")
    (tmp_path / "plain").mkdir()
    async with at(tmp_path / "plain") as client:
        assert (await client.call("tool", confirm=True))["run"] == "main"


async def test_no_hook_of_the_repository_runs(repo: Path) -> None:
    for name in ("post-checkout", "fsmonitor", "post-index-change"):
        hook = repo / ".git/hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {repo}/hooked\n")
        hook.chmod(0o755)
    git(repo, "config", "core.fsmonitor", str(repo / ".git/hooks/fsmonitor"))
    async with at(repo) as client:
        await client.call("tool", confirm=True)
        await close(client)
    assert not (repo / "hooked").exists()


async def test_postgres_keeps_a_run_for_each_worktree(repo: Path, postgres_url: str) -> None:
    git(repo, "worktree", "add", "-q", str(repo.parent / "second"), "-b", "fix")
    shared = {"database": postgres_url, "project_id": "shop-worktrees"}
    async with at(repo, "worktree", **shared) as here, at(repo.parent / "second", "worktree", **shared) as there:
        await here.call("tool", confirm=True)
        await there.call("tool", confirm=True)
        await close(here)
        assert await where(here) == ("main", "shape.build_knowledge")
        assert await where(there) == ("worktree.second", "shape.gather_context")
        assert there.completed() == ["shape.initialize_project"]
