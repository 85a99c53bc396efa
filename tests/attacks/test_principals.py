"""Attempts to be taken for somebody else, and servers that would serve without asking who calls."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.attacks.conftest import Attack
from tests.server.test_oauth import ISSUER, KEYS, token, verifier
from trysquare import Principal
from trysquare.core.context import local_principal
from trysquare.server import AnyVerifier, OAuthOptions, StaticTokens, StoredTokens
from trysquare.server.http.jwt import KeySet, OAuthTokens
from trysquare.store.database import open_database
from trysquare.store.tokens import Tokens

SERVE = [sys.executable, "-m", "trysquare", "serve", "--http", "127.0.0.1:0"]
OTHER_ISSUER = "https://other.example"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trysquare.toml").write_text("include_example_tools = true\n", encoding="utf-8")
    return tmp_path


def stored(tmp_path: Path, name: str) -> tuple[Tokens, str]:
    """A token of that name, as `trysquare token create` makes it."""
    tokens = Tokens(open_database(tmp_path / "state.db"))
    return tokens, tokens.create(name, by="test")[0]


@pytest.mark.parametrize("subject", ["ada", "token:ada", "fixed:ada", "", "ada\x00", " ada", "token", "\x1b[2J"])
async def test_a_subject_of_an_issuer_is_never_a_token_of_that_name(
    attack: Attack, tmp_path: Path, subject: str
) -> None:
    attack(door="HTTP, OAuth", attempt=f"be the bearer token `ada` by sub={subject!r}")
    tokens, secret = stored(tmp_path, "ada")
    every = AnyVerifier([StaticTokens(["x"], subject="ada"), StoredTokens(tokens.find), verifier()])
    owners = {await every.verify("x"), await every.verify(secret), local_principal(), Principal(subject="ada")}
    came_in = await every.verify(token(sub=subject))
    assert len(owners) == 4
    assert came_in is None or came_in not in owners


async def test_two_issuers_do_not_share_a_subject(attack: Attack) -> None:
    attack(door="HTTP, OAuth", attempt="be ada of one issuer with a token of another")
    other = OAuthTokens(OAuthOptions(issuer=OTHER_ISSUER), "https://mcp.example/mcp", keys=KeySet(lambda: KEYS))
    assert await verifier().verify(token()) != await other.verify(token(iss=OTHER_ISSUER))
    assert await other.verify(token(iss=ISSUER)) is None


async def test_a_token_is_never_the_user_of_the_machine(attack: Attack, tmp_path: Path) -> None:
    attack(door="HTTP, token", attempt="own what the user of the same name owns over stdio")
    tokens, secret = stored(tmp_path, local_principal().subject)
    found = tokens.verify(secret)
    assert found is not None
    assert found.subject != local_principal().subject


@contextmanager
def serving(*options: str) -> Generator[str]:
    """A server on a free port; its address."""
    with subprocess.Popen([*SERVE, *options], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield next(line for line in process.stderr if "Serving at" in line).split()[2]
        finally:
            process.terminate()
            process.wait(timeout=30)


def status_without_token(*options: str) -> int:
    with serving(*options) as address:
        return httpx.post(address, json={}).status_code


def test_an_empty_list_of_tokens_admits_nobody(attack: Attack, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attack(door="HTTP", attempt="call without a token while TRYSQUARE_HTTP_TOKENS is empty")
    monkeypatch.setenv("TRYSQUARE_HTTP_TOKENS", "")
    assert status_without_token() == 401


def test_an_empty_list_in_the_file_admits_nobody(attack: Attack, project: Path) -> None:
    attack(door="HTTP", attempt="call without a token while `http.tokens` is an empty list")
    (project / "trysquare.toml").write_text("[http]\ntokens = []\n", encoding="utf-8")
    assert status_without_token() == 401


def test_a_damaged_state_file_does_not_open_the_server(attack: Attack, project: Path) -> None:
    attack(door="HTTP", attempt="damage the file of the tokens, and call without one")
    made = subprocess.run([*SERVE[:3], "token", "create", "ada"], check=True, capture_output=True, text=True)
    assert made.stdout.startswith("tsq_")
    state = project / ".trysquare" / "state.db"
    with closing(sqlite3.connect(state)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    state.write_bytes(b"not a database, " * 512)
    assert status_without_token() == 401
    assert status_without_token() == 401, "nor at the next start"


def test_an_empty_issuer_is_refused_at_start(attack: Attack, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attack(door="HTTP", attempt="serve openly because the issuer's address did not arrive")
    monkeypatch.setenv("TRYSQUARE_HTTP_OAUTH_ISSUER", "")
    ended = subprocess.run(SERVE, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "issuer" in ended.stderr


def test_machines_that_would_disagree_are_refused_at_start(attack: Attack, project: Path) -> None:
    attack(door="HTTP, shared database", attempt="serve on several machines that do not share tokens")
    (project / "trysquare.toml").write_text('database = "postgresql://127.0.0.1:1/x"\n', encoding="utf-8")
    ended = subprocess.run(SERVE, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert re.search(r"http\.accept_local_state", ended.stderr)


def test_a_shared_database_needs_tokens_on_every_machine(attack: Attack, project: Path) -> None:
    attack(door="HTTP, shared database", attempt="call without a token on a machine that has none")
    text = 'database = "postgresql://127.0.0.1:1/x"\n[http]\naccept_local_state = true\n'
    (project / "trysquare.toml").write_text(text, encoding="utf-8")
    assert status_without_token() == 401
