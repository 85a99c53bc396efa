"""Who gets in, and what a page of somebody else can do: nothing."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.console.conftest import HTML, serving
from trysquare import Consent, Principal, Tools
from trysquare.server import HttpOptions

SCRIPT = "<script>document.title='owned'</script>"


class Tokens:
    async def verify(self, token: str) -> Principal | None:
        rights = {"boss": frozenset({"console"}), "agent": frozenset[str]()}
        return Principal(subject=f"token:{token}", rights=rights[token]) if token in rights else None


async def test_the_link_of_the_terminal_works_once(project: Path) -> None:
    async with serving(project) as site, site.visitor() as first, site.visitor() as second:
        link = site.sessions.link
        assert link is not None
        opened = await first.get(link)
        assert opened.status_code == 303
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert (await first.get("/", headers=HTML)).status_code == 200
        assert (await second.get(link)).status_code == 403
        assert (await second.get("/", headers=HTML)).headers["location"] == "/sign-in"
        assert site.sessions.link != link


@pytest.mark.parametrize("path", ["/", "/live", "/needs/badge"])
async def test_without_a_session_nothing_is_shown(project: Path, path: str) -> None:
    async with serving(project) as site, site.visitor() as visitor:
        assert (await visitor.get(path)).status_code == 401
        assert (await visitor.get(path, headers={"cookie": "trysquare_console=guess"})).status_code == 401


async def test_a_link_leads_nowhere_else(project: Path) -> None:
    async with serving(project) as site, site.visitor() as visitor:
        for target in ("https://evil.example/", "//evil.example/", "/\\evil.example"):
            opened = await visitor.get(f"{site.sessions.link}&to={target}")
            assert opened.headers["location"] == "/"


async def test_signing_out_ends_the_session(project: Path) -> None:
    async with serving(project) as site, site.browser() as browser:
        cookies = dict(browser.http.cookies)
        assert (await browser.post("/sign-out", {})).status_code == 303
        again = await browser.http.get("/", headers={"cookie": "; ".join(f"{k}={v}" for k, v in cookies.items())})
        assert again.status_code == 401


async def test_only_tokens_with_the_right_sign_in(project: Path) -> None:
    async with serving(project, http=HttpOptions(port=0, verifier=Tokens())) as site, site.visitor() as visitor:
        own = {"origin": site.base}
        for token in ("agent", "unknown", ""):
            assert (await visitor.post("/sign-in", data={"token": token}, headers=own)).status_code == 403
        assert (await visitor.post("/sign-in", data={"token": "boss"})).status_code == 403
        assert (await visitor.post("/sign-in", data={"token": "boss"}, headers=own)).status_code == 303
        assert "token:boss" in (await visitor.get("/", headers=HTML)).text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"origin": "http://localhost"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"host": "evil.example"}, 421),
    ],
)
async def test_a_page_of_another_origin_decides_nothing(project: Path, headers: dict[str, str], status: int) -> None:
    async with serving(project) as site, site.browser() as browser:
        given = {"question": "call-AAAA-BBBB 0", "choice": "approve"}
        assert (await browser.post("/needs/decide", given, **headers)).status_code == status
        assert (await browser.post("/needs/decide", given)).status_code == 200


async def test_a_post_needs_the_token_of_its_own_session(project: Path) -> None:
    async with serving(project) as site, site.browser() as mine, site.browser() as theirs:
        given = {"question": "call-AAAA-BBBB 0", "choice": "approve"}
        own, mine.csrf = mine.csrf, theirs.csrf
        assert (await mine.post("/needs/decide", given)).status_code == 403
        mine.csrf = ""
        assert (await mine.post("/needs/decide", given)).status_code == 403
        mine.csrf = own
        assert (await mine.post("/needs/decide", given)).status_code == 200


async def test_every_answer_has_a_policy_that_lets_no_foreign_script_run(project: Path) -> None:
    async with serving(project) as site, site.browser() as browser:
        for path in ("/", "/sign-in", "/static/console.js", "/nowhere"):
            headers = (await browser.http.get(path)).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
        page = await browser.get("/")
        assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=", page)


async def test_what_callers_write_is_text(project: Path) -> None:
    tools = Tools("shop")

    @tools.tool(consent=Consent(question="Delete {path}?"))
    def delete(path: str) -> str:
        """Delete a file."""
        return path

    async with (
        serving(project, tools) as site,
        site.browser() as browser,
        browser.watching() as changed,
        site.client(name=SCRIPT) as client,
    ):
        calling = asyncio.create_task(client.call_tool("delete", {"path": f"{SCRIPT}\u202e\x1b[31m"}))
        [question] = await browser.questions(changed)
        page = await browser.get("/")
        assert SCRIPT not in page
        assert page.count("&lt;script&gt;") >= 3
        assert "\u202e" not in page
        assert "\x1b" not in page
        await browser.decide(question, "approve", SCRIPT)
        await calling
