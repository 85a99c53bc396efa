"""`trysquare gateway login` and `trysquare gateway secret`, as a person runs them."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import threading
import urllib.request
import webbrowser
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import keyring
import pytest
from keyring.backends.fail import Keyring as NoKeyring

from tests.cli.conftest import Run
from tests.gateway.authorization_server import Accounts, guarded
from trysquare.store import SystemSecrets

FILE = ("--gateway", "mcp.json")


@pytest.fixture(autouse=True)
def no_keyring() -> Iterator[None]:
    """Secrets in the home of the test, whatever keyring the machine has."""
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    yield
    keyring.set_keyring(before)


@pytest.fixture
def guarded_place() -> Iterator[str]:
    """A server that asks for a login, in a thread of its own, since a command runs a loop of its own."""
    place: Future[str] = Future()
    loop = asyncio.new_event_loop()
    over = asyncio.Event()

    async def serve() -> None:
        async with guarded(Accounts()) as found:
            place.set_result(found)
            await over.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    yield place.result(timeout=30)
    loop.call_soon_threadsafe(over.set)
    thread.join()
    loop.close()


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A browser that opens whatever it is given, as a person's would who agrees to everything."""
    opened: list[str] = []
    visits: list[threading.Thread] = []

    def visit(address: str) -> None:
        with urllib.request.urlopen(address, timeout=20) as page:
            page.read()

    def open_address(address: str) -> bool:
        opened.append(address)
        visits.append(threading.Thread(target=visit, args=(address,)))
        visits[-1].start()
        return True

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", open_address)
    yield opened
    for each in visits:
        each.join()


def write_config(folder: Path, **servers: object) -> None:
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")


def test_a_login_opens_the_browser_and_is_used_from_then_on(
    run: Run, project: Path, guarded_place: str, browser: list[str]
) -> None:
    write_config(project, far={"url": f"{guarded_place}/mcp"})
    before = run("call", "far__echo", "text=hi", "--json", *FILE)
    assert "trysquare gateway login far" in before.out + before.err
    signed_in = run("gateway", "login", "far", *FILE)
    assert (signed_in.code, signed_in.err.count("Traceback")) == (0, 0)
    assert browser[0] in signed_in.out
    assert f"`far` ({guarded_place}/mcp)" in signed_in.out
    tested = run("gateway", "test", "far", *FILE)
    assert tested.code == 0, tested.out
    assert run("gateway", "login", "far", "--remove", *FILE).out == "Signed out of `far`.\n"
    assert "no login" in run("gateway", "login", "far", "--remove", *FILE).out
    assert run("gateway", "test", "far", *FILE).code == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("far", "Did you mean `farther`?"),
        ("local", "has no login"),
        ("broken", "needs a `command` to start or a `url`"),
        ("farther", "Login to `farther` failed"),
    ],
)
def test_a_login_that_cannot_be_says_why(run: Run, project: Path, name: str, said: str) -> None:
    write_config(project, farther={"url": "http://127.0.0.1:1/mcp"}, local={"command": "x"}, broken={})
    ended = run("gateway", "login", name)
    assert ended.code != 0
    assert said in ended.err


def test_a_secret_is_piped_in_and_filled_in(run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(project, far={"url": "https://example.com", "headers": {"X-Key": "${keyring:key}"}})
    assert "trysquare gateway secret key" in run("gateway", "list", *FILE).out
    monkeypatch.setattr(sys, "stdin", io.StringIO("s3cret\n"))
    kept = run("gateway", "secret", "key")
    assert kept.code == 0
    assert "${keyring:key}" in kept.out
    assert SystemSecrets().read("key") == "s3cret"
    shown = run("gateway", "list", *FILE)
    assert "broken" not in shown.out
    assert "s3cret" not in shown.out + shown.err + kept.err
    assert run("gateway", "secret", "key", "--remove").out == "Deleted the secret `key`.\n"
    assert SystemSecrets().read("key") is None


def test_an_empty_secret_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    ended = run("gateway", "secret", "input:key")
    assert ended.code != 0
    assert "empty" in ended.err
