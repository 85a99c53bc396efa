"""An approver signs with a passkey, in a real browser; whatever else is sent proves nothing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.console.authenticator import PRESENT, VERIFIED, SoftPasskey
from tests.console.chromium import Chromium
from tests.console.conftest import HTML, Browser, Site, serving
from tests.console.test_bots import write_document
from trysquare import Consent, Tools
from trysquare.bots.definition.scaffold import write_new_bot
from trysquare.cli.main import main
from trysquare.store import StoredApprovals

ADA = "ada@example.org"
STRICT = 'strict = true\nproject_id = "shop"\n'


def shop() -> tuple[Tools, list[str]]:
    tools, paid = Tools("shop"), list[str]()

    @tools.tool(consent=Consent(question="Pay {to}?"))
    def pay(to: str) -> str:
        """Pay somebody."""
        paid.append(to)
        return f"{to} is paid"

    return tools, paid


@pytest.fixture
def strict(project: Path) -> Path:
    """A strict project."""
    (project / "trysquare.toml").write_text(STRICT, encoding="utf-8")
    return project


def verified(project: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The checks of `trysquare verify` that do not hold."""
    capsys.readouterr()
    main(["verify", "--json", "--project", str(project)])
    return [each["check"] for each in json.loads(capsys.readouterr().out)["problems"]]


async def test_a_passkey_is_registered_by_the_link_and_proves_a_call(
    strict: Path, chromium: Chromium, capsys: pytest.CaptureFixture[str]
) -> None:
    tools, paid = shop()
    async with serving(strict, tools, registers=ADA) as site, chromium.window() as window:
        registration = site.console.registration
        assert registration is not None
        link = f"{site.page}{registration.link}"
        await window.add_authenticator()
        await window.open(link)
        assert await window.text("approver") == ADA
        await window.click("register")
        assert ADA in await window.text("registered")
        await window.open(link)
        assert "not valid" in await window.text("wrong")
        listed = json.loads((strict / ".trysquare-passkeys").read_text(encoding="utf-8"))
        assert (listed["approver"], listed["host"]) == (ADA, "localhost")
        await site.enter(window)
        async with site.client() as client:
            calling = asyncio.create_task(client.call_tool("pay", {"to": "Bob"}))
            await window.click("sign")
            assert (await calling).data == "Bob is paid"
        await window.shows(f"Signed by {ADA}")
        await window.appears("nothing-waits")
        assert [each for each in await window.problems() if "403" not in each] == []
        [receipt] = StoredApprovals(site.app.state).receipts()
        assert (receipt.by, receipt.how, paid) == (ADA, "signature", ["Bob"])
    assert verified(strict, capsys) == []
    (strict / ".trysquare-passkeys").write_text("", encoding="utf-8")
    assert verified(strict, capsys) == ["signatures"]


async def test_a_gate_is_closed_by_a_passkey_and_its_receipt_travels(
    strict: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    write_new_bot(strict / "release", "release", "release")
    (strict / "trysquare.toml").write_text(STRICT + 'bot = ["release"]\n', encoding="utf-8")
    passkey = SoftPasskey()
    passkey.register(strict)
    async with (
        serving(strict, bot=(strict / "release",)) as site,
        site.browser() as browser,
        browser.watching() as changed,
        site.client() as client,
    ):
        await client.call_tool("release_ship_build_knowledge", {"parameters": {"confirm": True}})
        write_document(strict, "1.4.0")
        closing = asyncio.create_task(client.call_tool("release_close_current_action", {}))
        [question] = await browser.questions(changed)
        asked = await statement(browser, site, question)
        for part in ('gate: "release.ship.build_knowledge"', "files: {", "leads_to: {"):
            assert part in asked
        await send(browser, question, asked, passkey.answer(asked, page=site.page))
        await closing
    assert verified(strict, capsys) == []
    receipts = list((strict / "workflow_receipts").glob("*.json"))
    assert len(receipts) == 1
    receipts[0].write_text(receipts[0].read_text(encoding="utf-8").replace("build_knowledge", "render_output"))
    assert "signatures" in verified(strict, capsys)


async def statement(browser: Browser, site: Site, question: str) -> str:
    """The text that is signed for a question."""
    response = await browser.post("/needs/statement", {"question": question}, **own(site))
    assert response.status_code == 200, response.text
    return response.json()["text"]


def own(site: Site) -> dict[str, str]:
    """The headers of a page that was opened by its name."""
    return {"origin": site.page, "host": site.page.removeprefix("http://")}


async def send(browser: Browser, question: str, text: str, answer: str) -> str:
    given = {"question": question, "choice": "approve", "statement": text, "answer": answer}
    return (await browser.post("/needs/decide", given)).text


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A call that waits for a signature, and the page on which it is asked."""

    site: Site
    browser: Browser
    passkey: SoftPasskey
    question: str
    text: str
    paid: list[str]

    async def sign(self, answer: str, *, text: str | None = None) -> str:
        return await send(self.browser, self.question, text or self.text, answer)

    def answer(self, **wrong: Any) -> str:
        return self.passkey.answer(wrong.pop("text", self.text), page=wrong.pop("page", self.site.page), **wrong)


@asynccontextmanager
async def asked(project: Path, **settings: Any) -> AsyncGenerator[Asked]:
    """A call waits for Ada's signature until the block ends; a signature that holds lets it run."""
    tools, paid = shop()
    passkey = SoftPasskey()
    passkey.register(project)
    async with (
        serving(project, tools, **settings) as site,
        site.browser() as browser,
        browser.watching() as changed,
        site.client() as client,
    ):
        calling = asyncio.create_task(client.call_tool("pay", {"to": "Bob"}, raise_on_error=False))
        [question] = await browser.questions(changed)
        text = await statement(browser, site, question)
        yield Asked(site=site, browser=browser, passkey=passkey, question=question, text=text, paid=paid)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)


async def test_the_same_answer_unaltered_is_accepted(strict: Path) -> None:
    async with asked(strict) as waiting:
        assert "is proven" in await waiting.sign(waiting.answer())


def altered(waiting: Asked, part: str, change: Callable[[str], str]) -> str:
    """The answer with one part of the browser's response changed."""
    answer = json.loads(waiting.answer())
    answer["response"][part] = change(answer["response"][part])
    return json.dumps(answer)


def flipped(text: str) -> str:
    return text[:-4] + ("A" if text[-4] != "A" else "B") + text[-3:]


FORGERIES: dict[str, Callable[[Asked], str]] = {
    "another origin": lambda it: it.answer(page="http://localhost:1"),
    "an origin in numbers": lambda it: it.answer(page=it.site.base),
    "another host": lambda it: it.answer(host="evil.example"),
    "no user verification": lambda it: it.answer(flags=PRESENT),
    "nobody present": lambda it: it.answer(flags=VERIFIED),
    "a registration": lambda it: it.answer(kind="webauthn.create"),
    "a page inside of another": lambda it: it.answer(framed=True),
    "another question": lambda it: it.answer(text=it.text.replace("Bob", "Eve")),
    "another key": lambda it: SoftPasskey(credential=it.passkey.credential).answer(it.text, page=it.site.page),
    "an unknown passkey": lambda it: SoftPasskey().answer(it.text, page=it.site.page),
    "an altered signature": lambda it: altered(it, "signature", flipped),
    "altered data of the authenticator": lambda it: altered(it, "authenticatorData", flipped),
    "altered data of the client": lambda it: altered(it, "clientDataJSON", flipped),
    "no signature": lambda it: altered(it, "signature", lambda text: ""),
    "no data of the authenticator": lambda it: altered(it, "authenticatorData", lambda text: ""),
    "no base64": lambda it: altered(it, "signature", lambda text: "ü+/="),
    "no object": lambda it: "[]",
    "no JSON": lambda it: "{" * 5000,
    "an SSH signature": lambda it: json.dumps("-----BEGIN SSH SIGNATURE-----"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_wrong_answer_approves_nothing(strict: Path, forgery: str) -> None:
    async with asked(strict) as waiting:
        assert "Not approved" in await waiting.sign(FORGERIES[forgery](waiting))
        assert waiting.paid == []
        assert StoredApprovals(waiting.site.app.state).receipts() == []
        # It waits on, and the right answer still counts.
        assert "is proven" in await waiting.sign(waiting.answer())


TEXTS: dict[str, Callable[[str], str]] = {
    "other arguments": lambda text: text.replace('{"to": "Bob"}', '{"to": "Eve"}'),
    "another project": lambda text: text.replace('project: "shop"', 'project: "bank"'),
    "an expired question": lambda text: re.sub(r'(expires: ")\d{4}', r"\g<1>2001", text),
    "a later time": lambda text: re.sub(r'(signed: ")\d{4}', r"\g<1>2999", text),
    "another page": lambda text: re.sub(r'page: ".*"', 'page: "https://evil.example"', text),
    "no page": lambda text: re.sub(r'page: ".*"\n', "", text),
    "a further field": lambda text: text + 'also: "this"\n',
}


@pytest.mark.parametrize("change", TEXTS)
async def test_a_signature_of_another_text_approves_nothing(strict: Path, change: str) -> None:
    async with asked(strict) as waiting:
        text = TEXTS[change](waiting.text)
        assert text != waiting.text
        assert "Not approved" in await waiting.sign(waiting.answer(text=text), text=text)
        assert waiting.paid == []


async def test_a_signature_counts_for_its_question_only(strict: Path) -> None:
    async with asked(strict) as waiting:
        answer = waiting.answer()
        assert "is proven" in await waiting.sign(answer)
        async with waiting.browser.watching() as changed, waiting.site.client() as client:
            again = asyncio.create_task(client.call_tool("pay", {"to": "Bob"}, raise_on_error=False))
            [question] = await waiting.browser.questions(changed)
            assert "Not approved" in await send(waiting.browser, question, waiting.text, answer)
            again.cancel()
            await asyncio.gather(again, return_exceptions=True)
        assert waiting.paid == ["Bob"]


async def test_a_copy_of_a_passkey_is_found_by_its_counter(strict: Path) -> None:
    async with asked(strict) as waiting:
        waiting.passkey.counter = 7
        assert "is proven" in await waiting.sign(waiting.answer())
        async with waiting.browser.watching() as changed, waiting.site.client() as client:
            again = asyncio.create_task(client.call_tool("pay", {"to": "Eve"}, raise_on_error=False))
            [question] = await waiting.browser.questions(changed)
            text = await statement(waiting.browser, waiting.site, question)
            for counter, said in ((7, "counter"), (0, "counter"), (8, "is proven")):
                waiting.passkey.counter = counter
                answer = waiting.passkey.answer(text, page=waiting.site.page)
                assert said in await send(waiting.browser, question, text, answer)
            await again


async def test_only_whom_a_rule_names_may_approve(strict: Path) -> None:
    rules = ("tool:pay=bob@example.org",)
    async with asked(strict, **{"approvers.rules": rules}) as waiting:
        assert f"no rule lets {ADA} approve pay" in await waiting.sign(waiting.answer())
        bob = SoftPasskey(approver="bob@example.org")
        bob.register(strict)
        assert "Signed by bob@example.org" in await waiting.sign(bob.answer(waiting.text, page=waiting.site.page))


async def test_a_passkey_that_has_ended_signs_nothing_new(strict: Path) -> None:
    async with asked(strict) as waiting:
        ended = SoftPasskey()
        ended.register(strict, valid_before="2026-01-01T00:00:00Z")
        assert "valid before" in await waiting.sign(ended.answer(waiting.text, page=waiting.site.page))


async def test_a_file_of_passkeys_that_cannot_be_read_approves_nothing(strict: Path) -> None:
    async with asked(strict) as waiting:
        for line in ("ada@example.org", "{}", '{"approver": "", "host": "", "credential": "", "public_key": ""}'):
            (strict / ".trysquare-passkeys").write_text(f"{line}\n", encoding="utf-8")
            assert "is not a passkey" in await waiting.sign(waiting.answer())
        (strict / ".trysquare-passkeys").unlink()
        assert "Not approved" in await waiting.sign(waiting.answer())


async def test_a_click_is_not_a_signature(strict: Path) -> None:
    async with asked(strict) as waiting:
        said = await waiting.browser.decide(waiting.question, "approve")
        assert "not proven" in said
        assert waiting.paid == []
        assert (await waiting.browser.post("/needs/statement", {"question": waiting.question})).status_code == 409


async def test_a_refusal_needs_no_signature(strict: Path) -> None:
    async with asked(strict) as waiting:
        assert "Refused" in await waiting.browser.decide(waiting.question, "refuse", "too much")


async def test_a_browser_without_the_passkey_signs_nothing(strict: Path, chromium: Chromium) -> None:
    """An agent with a shell can open the link and drive a browser; it has no passkey, or one of its own."""
    async with asked(strict) as waiting, chromium.window() as agent:
        await agent.add_authenticator()
        await waiting.site.enter(agent)
        await agent.click("sign")
        await agent.shows("Not signed")
        await agent.evaluate(
            "fetch('/needs/decide', {method: 'POST', body: new URLSearchParams({csrf: document.body.dataset.csrf, "
            f"question: {json.dumps(waiting.question)}, choice: 'approve'}})}}).then((it) => it.status)"
        )
        assert waiting.paid == []
        receipts = StoredApprovals(waiting.site.app.state).receipts()
        assert [each.signature for each in receipts] == [None]


async def test_an_authenticator_that_verifies_nobody_signs_nothing(strict: Path, chromium: Chromium) -> None:
    async with serving(strict, registers=ADA) as site, chromium.window() as window:
        registration = site.console.registration
        assert registration is not None
        await window.add_authenticator(isUserVerified=False)
        await window.open(f"{site.page}{registration.link}")
        await window.click("register")
        await window.until("document.querySelector('.wrong').textContent.startsWith('Not registered')")
        assert not (strict / ".trysquare-passkeys").exists()


async def test_the_link_that_registers_is_needed_and_ends(strict: Path) -> None:
    async with serving(strict, registers=ADA) as site, site.visitor() as visitor:
        registration = site.console.registration
        assert registration is not None
        assert registration.link is not None
        for wrong in ("/passkey", "/passkey?key=guess"):
            assert (await visitor.get(wrong, headers=HTML)).status_code == 403
        headers = own(site)
        assert "data-create" in (await visitor.get(registration.link, headers=headers)).text
        # An address in numbers has no passkeys: the page says where to open it.
        assert (await visitor.get(registration.link)).status_code == 400
        for origin in ("http://evil.example", "null"):
            form = {"key": registration.link.partition("=")[2], "credential": "{}"}
            sent = await visitor.post("/passkey", data=form, headers={**headers, "origin": origin})
            assert sent.status_code == 403
        registration.clock = lambda: 1e12
        assert (await visitor.get(registration.link, headers=headers)).status_code == 403
