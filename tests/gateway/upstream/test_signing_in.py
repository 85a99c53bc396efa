"""Signing in at a real authorization server, and what the login is good for afterwards."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest

from tests.gateway.authorization_server import Accounts, guarded
from tests.gateway.remote_servers import Scripted, channels, listening, remote
from tests.gateway.toys import hear_nothing, say, words
from trysquare import ConfigurationError, ToolError
from trysquare.gateway import ServerConfig, login_name, sign_in
from trysquare.gateway.models import OAuthClient
from trysquare.gateway.pool.pool import ServerPool, open_pool
from trysquare.gateway.upstream.oauth import Login, LoginExpired, load_login, login_lock, save_login
from trysquare.store import Secrets


@pytest.fixture
def secrets(tmp_path: Path) -> Secrets:
    return Secrets(tmp_path / "secrets.json")


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Browser:
    """Opens the address that a person is shown, and follows where it leads, as theirs would."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self._visits: set[asyncio.Task[httpx2.Response]] = set()

    def show(self, address: str) -> None:
        self.opened.append(address)
        self._visits.add(asyncio.ensure_future(self._visit(address)))

    async def _visit(self, address: str) -> httpx2.Response:
        async with httpx2.AsyncClient(follow_redirects=True) as client:
            return await client.get(address)

    async def pages(self) -> list[httpx2.Response]:
        return list(await asyncio.gather(*self._visits))


async def signed_in(config: ServerConfig, secrets: Secrets) -> Browser:
    browser = Browser()
    with anyio.fail_after(30):
        assert await sign_in(config, secrets, show=browser.show)
    return browser


@asynccontextmanager
async def fleet_of(config: ServerConfig, secrets: Secrets) -> AsyncGenerator[ServerPool]:
    async with open_pool({"far": config}, on_change=hear_nothing, transports=channels(secrets)) as pool:
        yield pool


@pytest.mark.parametrize("modern", [True, False])
async def test_after_a_login_the_tools_answer(modern: bool, secrets: Secrets) -> None:
    accounts = Accounts()
    async with guarded(accounts, modern=modern) as place:
        config = remote(f"{place}/mcp")
        async with fleet_of(config, secrets) as pool:
            with pytest.raises(ToolError) as caught:
                await say(pool, "echo", "hi", server="far")
        assert "`trysquare gateway login far`" in (caught.value.instruction or "")
        browser = await signed_in(config, secrets)
        async with fleet_of(config, secrets) as pool:
            found = await asyncio.gather(*(words(pool, "echo", number, server="far") for number in range(8)))
    assert found == [str(number) for number in range(8)]
    [address] = browser.opened
    query = parse_qs(urlsplit(address).query)
    assert query["code_challenge_method"] == ["S256"]
    assert query["resource"] == [f"{place}/mcp"]
    [page] = await browser.pages()
    assert "return to the terminal" in page.text


async def test_a_login_works_over_the_older_transport_too(secrets: Secrets) -> None:
    async with guarded(Accounts(), modern=False, path="/sse") as place:
        config = remote(f"{place}/sse", "sse")
        async with fleet_of(config, secrets) as pool:
            with pytest.raises(ToolError) as caught:
                await say(pool, "echo", "hi", server="far")
        assert "`trysquare gateway login far`" in (caught.value.instruction or "")
        await signed_in(config, secrets)
        async with fleet_of(config, secrets) as pool:
            assert await words(pool, "echo", "hi", server="far") == "hi"


async def test_the_scopes_and_the_port_of_the_entry_are_used(secrets: Secrets, free_port: int) -> None:
    accounts = Accounts()
    async with guarded(accounts) as place:
        config = remote(f"{place}/mcp", oauth=OAuthClient(scopes=("read", "write"), callback_port=free_port))
        browser = await signed_in(config, secrets)
    query = parse_qs(urlsplit(browser.opened[0]).query)
    assert query["scope"] == ["read write"]
    assert query["redirect_uri"] == [f"http://127.0.0.1:{free_port}/callback"]
    [access] = accounts.access.values()
    assert access.scopes == ["read", "write"]


async def test_a_token_that_is_about_to_end_is_renewed_once_for_all_callers(secrets: Secrets) -> None:
    accounts = Accounts(lifetime=1)
    async with guarded(accounts) as place:
        config = remote(f"{place}/mcp")
        await signed_in(config, secrets)
        accounts.lifetime = 3600
        async with fleet_of(config, secrets) as pool:
            await asyncio.gather(*(words(pool, "echo", number, server="far") for number in range(8)))
        async with fleet_of(config, secrets) as pool:
            await words(pool, "echo", server="far")
    assert accounts.renewals == 1


async def test_a_token_that_the_server_no_longer_takes_is_renewed(secrets: Secrets) -> None:
    accounts = Accounts()
    async with guarded(accounts) as place:
        config = remote(f"{place}/mcp")
        await signed_in(config, secrets)
        async with fleet_of(config, secrets) as pool:
            await words(pool, "echo", server="far")
            accounts.access.clear()
            assert await words(pool, "echo", "again", server="far") == "again"
    assert accounts.renewals == 1


async def test_a_login_that_cannot_be_renewed_asks_for_another(secrets: Secrets) -> None:
    accounts = Accounts()
    async with guarded(accounts) as place:
        config = remote(f"{place}/mcp")
        await signed_in(config, secrets)
        accounts.access.clear()
        accounts.refresh.clear()
        async with fleet_of(config, secrets) as pool:
            with pytest.raises(ToolError) as caught:
                await say(pool, "echo", "hi", server="far")
    assert "`trysquare gateway login far`" in (caught.value.instruction or "")
    assert caught.value.fields["outcome"] == "not_sent"


async def test_a_login_that_another_process_renewed_is_taken_over(secrets: Secrets) -> None:
    accounts = Accounts()
    async with guarded(accounts) as place:
        config = remote(f"{place}/mcp")
        await signed_in(config, secrets)
        async with fleet_of(config, secrets) as pool:
            await words(pool, "echo", server="far")
            await signed_in(config, secrets)
            accounts.refresh.clear()
            for token in list(accounts.access)[:-1]:
                del accounts.access[token]
            assert await words(pool, "echo", "x", server="far") == "x"
    assert accounts.renewals == 0


async def test_a_token_is_not_sent_to_another_address_of_the_same_name(secrets: Secrets) -> None:
    accounts, other = Accounts(), Scripted()
    async with guarded(accounts) as place, listening(other.app) as elsewhere:
        await signed_in(remote(f"{place}/mcp"), secrets)
        async with fleet_of(remote(f"{elsewhere}/mcp"), secrets) as pool:
            await words(pool, "echo", server="far")
    assert "authorization" not in {name for _, headers, _ in other.seen for name in headers}


async def test_a_server_that_asks_nobody_says_so(secrets: Secrets) -> None:
    async with listening(Scripted().app) as place:
        assert not await sign_in(remote(f"{place}/mcp"), secrets, show=lambda address: None)
    assert load_login(remote(f"{place}/mcp"), secrets) is None


async def test_without_the_sdk_a_login_names_the_extra(secrets: Secrets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.client.auth", None)
    with pytest.raises(ConfigurationError, match=r"MCP SDK is not installed") as caught:
        await sign_in(remote("http://127.0.0.1:9/mcp"), secrets, show=lambda address: None)
    assert caught.value.hint == "Run: pip install 'trysquare[login]'"


async def test_an_answer_that_nobody_asked_for_is_sent_away(secrets: Secrets) -> None:
    accounts = Accounts()

    async def forge(address: str) -> None:
        callback = parse_qs(urlsplit(address).query)["redirect_uri"][0]
        async with httpx2.AsyncClient(follow_redirects=True) as client:
            forged = await client.get(f"{callback}?code=evil&state=guess")
            assert forged.status_code == 404
            await client.get(address)

    async with guarded(accounts) as place:
        config = remote(f"{place}/mcp")
        async with asyncio.TaskGroup() as group:
            with anyio.fail_after(30):
                assert await sign_in(config, secrets, show=lambda address: group.create_task(forge(address)) and None)


async def test_a_declined_consent_ends_the_login(secrets: Secrets) -> None:
    async def refuse(address: str) -> None:
        query = parse_qs(urlsplit(address).query)
        async with httpx2.AsyncClient() as client:
            await client.get(f"{query['redirect_uri'][0]}?error=access_denied&state={query['state'][0]}")

    async with guarded(Accounts()) as place:
        config = remote(f"{place}/mcp")
        async with asyncio.TaskGroup() as group:
            with anyio.fail_after(30), pytest.raises(ConfigurationError, match=r"refused \(access_denied\)"):
                await sign_in(config, secrets, show=lambda address: group.create_task(refuse(address)) and None)
    assert load_login(config, secrets) is None


async def test_no_token_is_in_what_is_logged_or_shown(secrets: Secrets, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "trysquare")
    async with guarded(Accounts(lifetime=1)) as place:
        config = remote(f"{place}/mcp")
        await signed_in(config, secrets)
        async with fleet_of(config, secrets) as pool:
            await words(pool, "echo", server="far")
    login = load_login(config, secrets)
    assert "s3cret" not in caplog.text + repr(login)


def test_a_login_that_is_spoilt_counts_as_none(secrets: Secrets) -> None:
    config = remote("https://example.com/mcp")
    for text in ("", "[]", "{}", '{"access_token": 3}'):
        secrets.write(f"login:far:{config.url}", text)
        assert load_login(config, secrets) is None
    login = Login(access_token="a", client_id="c")
    save_login(config, secrets, login)
    kept = json.loads(secrets.read(f"login:far:{config.url}") or "")
    secrets.write(f"login:far:{config.url}", json.dumps({**kept, "of a later version": 1}))
    assert load_login(config, secrets) == login
    assert load_login(dataclasses.replace(config, url="https://example.org/mcp"), secrets) is None


async def _process(url: str, folder: Path, what: str) -> asyncio.subprocess.Process:
    program = ("-m", "tests.gateway.login_process", url, str(folder / "secrets.json"), what)
    return await asyncio.create_subprocess_exec(sys.executable, *program, stdout=asyncio.subprocess.PIPE)


async def test_two_processes_never_renew_with_the_same_token(secrets: Secrets, tmp_path: Path) -> None:
    accounts = Accounts(lifetime=1)
    async with guarded(accounts) as place:
        # Tokens end as soon as they are given out, so that each call of each process renews one.
        await signed_in(remote(f"{place}/mcp"), secrets)
        with anyio.fail_after(120):
            started = [await _process(f"{place}/mcp", tmp_path, "12") for _ in range(3)]
            ended = await asyncio.gather(*(process.wait() for process in started))
    assert ended == [0, 0, 0]
    assert accounts.renewals > 12
    assert accounts.reused == 0


async def test_a_killed_process_keeps_nobody_from_renewing(secrets: Secrets, tmp_path: Path) -> None:
    accounts = Accounts(lifetime=1)
    async with guarded(accounts) as place:
        config = remote(f"{place}/mcp")
        await signed_in(config, secrets)
        with anyio.fail_after(60):
            holder = await _process(config.url, tmp_path, "hold")
            assert holder.stdout is not None
            assert await holder.stdout.readline() == b"held\n"
            with pytest.raises(LoginExpired):
                async with login_lock(config, seconds=0.05):
                    raise AssertionError("two hold the lock")
            holder.kill()
            await holder.wait()
            async with fleet_of(config, secrets) as pool:
                assert await words(pool, "echo", "hi", server="far") == "hi"


async def test_a_login_that_was_removed_does_not_come_back_by_a_renewal(secrets: Secrets) -> None:
    async with guarded(Accounts(lifetime=1)) as place:
        config = remote(f"{place}/mcp")
        await signed_in(config, secrets)
        async with fleet_of(config, secrets) as pool:
            await words(pool, "echo", "hi", server="far")
            secrets.remove(login_name(config))
            with pytest.raises(ToolError) as caught:
                await say(pool, "echo", "hi", server="far")
    assert caught.value.fields["outcome"] == "not_sent"
    assert load_login(config, secrets) is None
