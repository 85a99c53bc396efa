"""`trysquare token`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from trysquare.store.database import open_database
from trysquare.store.tokens import Tokens

HERE = ("--project", ".")


def test_a_created_token_is_shown_once_and_grants_the_scopes_it_names(run: Run, project: Path) -> None:
    made = run("token", "create", "ada", "--scope", "tools", "--expires", "90d", "--json", *HERE).json
    database = open_database(project / ".trysquare" / "state.db")
    principal = Tokens(database).verify(made["token"])
    database.close()
    assert principal is not None
    assert (principal.subject, principal.scopes) == ("token:ada", frozenset({"tools"}))
    listing = run("token", "list", *HERE).out
    assert "ada" in listing
    assert "valid until" in listing
    assert made["token"] not in listing


def test_the_first_line_is_the_token_alone(run: Run) -> None:
    first, *_ = run("token", "create", "ada", *HERE).out.splitlines()
    assert first.startswith("tsq_")
    assert " " not in first


def test_a_revoked_token_says_so(run: Run) -> None:
    run("token", "create", "ada", *HERE)
    revoked = run("token", "revoke", "ada", *HERE).out
    assert "ada" in revoked
    assert "Revoked" in revoked
    assert "revoked" in run("token", "list", *HERE).out
    [info] = run("token", "list", "--json", *HERE).json
    assert info["revoked"] is not None


def test_without_tokens_the_list_says_how_to_make_one(run: Run) -> None:
    assert "trysquare token create NAME" in run("token", "list", *HERE).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create", "a b"], "token create: a name has 1 to 64"),
        (["create", "ada", "--scope", "tols"], "--scope: unknown scope `tols`. Did you mean `tools`?"),
        (["create", "ada", "--expires", "soon"], "--expires: expected a time such as 90d, 12h or 30m; got `soon`."),
        (["revoke", "nobody"], "No active token is named `nobody`."),
    ],
)
def test_wrong_usage_is_reported(run: Run, words: list[str], said: str) -> None:
    ran = run("token", *words, *HERE)
    assert ran.code == 2
    assert said in ran.err
