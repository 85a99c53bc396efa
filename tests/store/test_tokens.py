"""Tokens: made once, kept as hashes, ended at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from trysquare import ConfigurationError, Principal
from trysquare.store import Database
from trysquare.store.audit import Audit
from trysquare.store.database import open_database
from trysquare.store.tokens import Tokens


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path / "s" / "state.db")) as opened:
        yield opened


@pytest.fixture
def tokens(database: Database) -> Tokens:
    return Tokens(database)


def test_a_token_stands_for_its_name_and_scopes(tokens: Tokens) -> None:
    token, info = tokens.create("laptop", by="ada", scopes=["tools", "bots", "tools"])
    assert info.scopes == frozenset({"tools", "bots"})
    assert tokens.verify(token) == Principal(subject="token:laptop", scopes=frozenset({"tools", "bots"}))


def test_a_token_without_scopes_opens_everything(tokens: Tokens) -> None:
    token, _ = tokens.create("laptop", by="ada")
    assert tokens.verify(token) == Principal(subject="token:laptop", scopes=None)


def test_an_empty_set_of_scopes_opens_nothing(tokens: Tokens) -> None:
    token, _ = tokens.create("laptop", by="ada", scopes=[])
    assert tokens.verify(token) == Principal(subject="token:laptop", scopes=frozenset())


def test_the_file_does_not_hold_the_token(tokens: Tokens, database: Database) -> None:
    token, _ = tokens.create("laptop", by="ada")
    secret = token.split("_", 2)[2].encode()
    database.close()
    assert all(secret not in file.read_bytes() for file in database.path.parent.iterdir())


@pytest.mark.parametrize("change", [str.upper, lambda text: text[:-1], lambda text: text + "x", lambda text: ""])
def test_anything_but_the_exact_token_is_unknown(tokens: Tokens, change: Callable[[str], str]) -> None:
    token, info = tokens.create("laptop", by="ada")
    assert tokens.verify(change(token)) is None
    assert tokens.verify(info.id) is None
    assert tokens.verify("\ud800") is None


def test_a_revoked_token_ends_at_once_and_frees_its_name(tokens: Tokens) -> None:
    token, _ = tokens.create("laptop", by="ada")
    tokens.revoke("laptop", by="ada")
    assert tokens.verify(token) is None
    again, _ = tokens.create("laptop", by="ada")
    assert again != token
    assert [info.revoked is None for info in tokens.all()] == [False, True]


def test_a_token_ends_with_its_lifetime(database: Database) -> None:
    now = [0.0]
    tokens = Tokens(database, clock=lambda: now[0])
    token, _ = tokens.create("laptop", by="ada", lifetime=60.0)
    assert tokens.verify(token) is not None
    now[0] = 60.0
    assert tokens.verify(token) is None


def test_two_living_tokens_of_one_name_are_refused(tokens: Tokens) -> None:
    tokens.create("laptop", by="ada")
    with pytest.raises(ConfigurationError, match="`laptop`"):
        tokens.create("laptop", by="ada")


def test_an_unknown_name_cannot_be_revoked(tokens: Tokens) -> None:
    with pytest.raises(ConfigurationError, match="`phone`"):
        tokens.revoke("phone", by="ada")


def test_the_time_of_last_use_is_kept(tokens: Tokens) -> None:
    token, info = tokens.create("laptop", by="ada")
    assert info.last_used is None
    tokens.verify(token)
    [used] = tokens.all()
    assert used.last_used is not None


def test_making_and_ending_tokens_stands_in_the_audit(tokens: Tokens, database: Database) -> None:
    tokens.create("laptop", by="ada", scopes=["tools"])
    tokens.revoke("laptop", by="bob")
    rows = Audit(database).rows()
    assert [(row.kind, row.principal, row.body["name"]) for row in rows] == [
        ("token.created", "ada", "laptop"),
        ("token.revoked", "bob", "laptop"),
    ]
