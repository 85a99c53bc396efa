"""Which branch and worktree a directory belongs to, by git's files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bots.git_checkouts import commit, git, repository
from trysquare.files.checkout import find_checkout


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


def test_outside_of_git_there_is_no_checkout(tmp_path: Path) -> None:
    assert find_checkout(tmp_path) is None


def test_a_directory_inside_belongs_to_its_working_tree(repo: Path) -> None:
    (repo / "a/b").mkdir(parents=True)
    found = find_checkout(repo / "a/b")
    assert found is not None
    assert (found.root, found.branch, found.is_default, found.worktree) == (repo, "main", True, None)


@pytest.mark.parametrize("pack", [False, True])
def test_another_branch_is_not_the_default_one(repo: Path, pack: bool) -> None:
    git(repo, "switch", "-q", "-c", "feature/Ünï")
    if pack:
        git(repo, "pack-refs", "--all")
    found = find_checkout(repo)
    assert found is not None
    assert (found.branch, found.is_default) == ("feature/Ünï", False)


def test_before_the_first_commit_the_branch_is_the_default_one(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "trunk")
    found = find_checkout(tmp_path)
    assert found is not None
    assert (found.branch, found.is_default) == ("trunk", True)


def test_the_remote_says_which_branch_is_the_default_one(repo: Path, tmp_path: Path) -> None:
    git(repo, "switch", "-q", "-c", "develop")
    git(tmp_path, "clone", "-q", str(repo), "clone")
    found = find_checkout(tmp_path / "clone")
    assert found is not None
    assert (found.branch, found.is_default) == ("develop", True)


def test_a_linked_worktree_has_its_name_and_its_branch(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "second"), "-b", "fix")
    found = find_checkout(tmp_path / "second")
    assert found is not None
    assert (found.worktree, found.branch, found.is_default) == ("second", "fix", False)


def test_a_detached_head_has_a_commit_and_a_rebase_its_branch(repo: Path) -> None:
    git(repo, "checkout", "-q", "--detach")
    found = find_checkout(repo)
    assert found is not None
    assert (found.branch, found.commit) == (None, git(repo, "rev-parse", "HEAD").strip())
    git(repo, "switch", "-q", "-c", "fix")
    (repo / "a").write_text("fix")
    commit(repo)
    git(repo, "switch", "-q", "main")
    (repo / "a").write_text("main")
    commit(repo)
    git(repo, "rebase", "-q", "main", "fix", fails=True)
    assert (repo / ".git/rebase-merge").is_dir()
    found = find_checkout(repo)
    assert found is not None
    assert found.branch == "fix"


@pytest.mark.parametrize("text", ["", "gitdir: nowhere", "gitdir: ", "x"])
def test_a_broken_git_file_is_no_checkout(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").write_text(text)
    assert find_checkout(tmp_path) is None
