"""Every tool has a form, and a call from the page is a call like a client's."""

from __future__ import annotations

import asyncio
import html
import json
import re
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from tests.console.conftest import Browser, serving
from trysquare import CallContext, Image, Tools

SCRIPT = "<script>document.title='owned'</script>"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


class Address(BaseModel):
    street: str
    floor: int | None = None


class Stop(Address):
    minutes: int = 10


def workshop(started: asyncio.Event | None = None) -> Tools:
    tools = Tools("shop")

    @tools.tool
    def ship(
        order: Annotated[int, Field(ge=1)],
        to: Address,
        weight: float,
        gift: bool,
        speed: Literal["slow", "fast"] = "slow",
        tags: list[str] | None = None,
        sizes: list[int] | None = None,
        extra: int | Address | None = None,
        labels: dict[str, str] | None = None,
        note: str = "",
        stops: list[Stop] | None = None,
        day: date | None = None,
    ) -> dict[str, Any]:
        """Ship an order."""
        assert day is None or isinstance(day, date)
        given = {"order": order, "to": to.model_dump(), "weight": weight, "gift": gift, "speed": speed, "tags": tags}
        more = extra.model_dump() if isinstance(extra, Address) else extra
        more_stops = stops and [each.model_dump() for each in stops]
        return {
            **given,
            "stops": more_stops,
            "sizes": sizes,
            "extra": more,
            "labels": labels,
            "note": note,
            "day": str(day),
        }

    @tools.tool
    async def wait(context: CallContext) -> str:
        """Wait for ever."""
        await context.progress(3, 10, f"at {SCRIPT}")
        if started is not None:
            started.set()
        await asyncio.Event().wait()
        return ""

    @tools.tool
    def draw() -> Image:
        """Draw a picture."""
        return Image(data=PIXEL)

    @tools.tool
    def shout(text: str) -> str:
        """Shout <b>loudly</b>."""
        if text == "crash":
            raise ValueError(text)
        return SCRIPT + text

    @tools.prompt
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello {name}, {SCRIPT}"

    @tools.resource("shop://sign")
    def sign() -> str:
        """The sign over the shop."""
        return SCRIPT

    return tools


def shown(page: str, testid: str) -> str:
    found = re.search(rf'data-testid="{testid}"[^>]*>(.*?)</(?:pre|span)>', page, re.DOTALL)
    assert found is not None, page
    return html.unescape(found[1])


async def send(browser: Browser, tool: str, fields: dict[str, str]) -> str:
    response = await browser.post(f"/call/{tool}", fields)
    assert response.status_code == 200, response.text
    return response.text


async def test_a_form_takes_every_kind_of_value(project: Path) -> None:
    async with serving(project, workshop()) as site, site.browser() as browser:
        page = await browser.get("/tools/ship")
        names = re.findall(r'name="(arg/[^"]+)"', page)
        fields = {
            "arg/order": "7", "arg/to/street": "Main 1", "arg/to/floor": "", "arg/weight": "1.5", "arg/gift": "true",
            "arg/speed": '"fast"', "arg/tags": "a\r\nb c", "arg/sizes": "1\n2", "arg/extra": "12",
            "arg/labels": '{"k": "v"}', "arg/note": "", "arg/day": "2026-05-04",
        }  # fmt: skip
        assert names == list(fields)
        answer = await send(browser, "ship", fields)
        assert json.loads(shown(answer, "structured")) == {
            "order": 7, "to": {"street": "Main 1", "floor": None}, "weight": 1.5, "gift": True, "speed": "fast",
            "tags": ["a", "b c"], "sizes": [1, 2], "extra": 12, "labels": {"k": "v"},
            "note": "", "stops": None, "day": "2026-05-04",
        }  # fmt: skip
        assert "to" in json.loads(shown(answer, "sent"))
        assert "labels" not in json.loads(shown(await send(browser, "ship", {"arg/order": "7"}), "sent"))


def filled(form: str) -> dict[str, str]:
    """What a form would send as it stands: its inputs, and the first choice of each."""
    found = dict(re.findall(r'<input[^>]* name="([^"]+)"[^>]*?value="([^"]*)"', form))
    found |= dict(re.findall(r'<textarea[^>]* name="([^"]+)"[^>]*>\n([^<]*)<', form))
    for name, options in re.findall(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected', options)
        found[name] = chosen[1] if chosen else ""
    return {name: html.unescape(value) for name, value in found.items() if name != "csrf"}


async def test_rows_and_shapes_are_drawn_as_they_are_filled(project: Path) -> None:
    async with serving(project, workshop()) as site, site.browser() as browser:
        required = {"arg/order": "7", "arg/to/street": "Main 1", "arg/weight": "1", "arg/gift": "true"}

        async def redraw(fields: dict[str, str], **more: str) -> dict[str, str]:
            return filled((await browser.post("/form/ship", {**fields, **more})).text)

        form = await redraw({**filled(await browser.get("/tools/ship")), **required}, add="arg/stops")
        assert form["arg/stops/0/minutes"] == "10"
        form = await redraw({**form, "arg/stops/0/street": "Pier 1", "arg/stops/0/minutes": ""}, add="arg/stops")
        assert form["arg/stops/0/minutes"] == ""
        form = await redraw({**form, "arg/stops/1/street": "Pier 2", "arg/stops/1/floor": "2"}, add="arg/stops")
        form = await redraw({**form, "arg/stops/2/street": "Pier 3"}, remove="arg/stops/0")
        form = await redraw({**form, "variant/arg/extra": "1"})
        assert {name: value for name, value in form.items() if name in required} == required
        answer = await send(browser, "ship", {**form, "arg/extra/street": "Side 2"})
        sent = json.loads(shown(answer, "sent"))
        assert sent["stops"] == [
            {"street": "Pier 2", "floor": 2, "minutes": 10},
            {"street": "Pier 3", "minutes": 10},
        ]
        assert sent["extra"] == {"street": "Side 2"}
        assert shown(answer, "outcome") == "ok"
        form = await redraw(await redraw(form, remove="arg/stops/0"), remove="arg/stops/0")
        assert "stops" not in json.loads(shown(await send(browser, "ship", form), "sent"))
        for hostile in ({"add": "arg/order"}, {"remove": "arg/stops/x"}, {"arg/stops/99999999/street": "far"}):
            assert "arg/order" in await redraw(form, **hostile)


async def test_a_wrong_call_brings_the_corrected_one_which_one_click_sends(project: Path) -> None:
    async with serving(project, workshop()) as site, site.browser() as browser:
        answer = await send(browser, "shout", {"json": '{"txt": "hi"}'})
        assert shown(answer, "outcome") == "error"
        target = re.search(r'action="(/call/[^"]+)"[^>]*class="next".*?name="json" value="([^"]*)"', answer, re.DOTALL)
        assert target is not None
        again = await browser.post(target[1], {"json": html.unescape(target[2])})
        assert shown(again.text, "outcome") == "ok"


async def test_a_call_shows_its_progress_and_ends_when_it_is_cancelled(project: Path) -> None:
    started = asyncio.Event()
    async with serving(project, workshop(started)) as site, site.browser() as browser, site.browser() as other:
        answer = await send(browser, "wait", {})
        await started.wait()
        trial = re.search(r'hx-get="(/trials/\w+)"', answer)
        assert trial is not None
        running = await browser.get(trial[1], part=True)
        assert '<progress value="3' in running
        assert SCRIPT not in running
        # A call belongs to the session that made it.
        assert (await other.http.get(trial[1])).status_code == 400
        assert (await other.post(f"{trial[1]}/cancel", {})).status_code == 400
        cancelled = await browser.post(f"{trial[1]}/cancel", {})
        assert shown(cancelled.text, "outcome") == "cancelled"


async def test_results_are_shown_as_what_they_are(project: Path) -> None:
    async with serving(project, workshop()) as site, site.browser() as browser:
        assert 'src="data:image/png;base64,' in await send(browser, "draw", {})
        answer = await send(browser, "shout", {"arg/text": SCRIPT})
        assert SCRIPT not in answer
        assert shown(answer, "text") == SCRIPT * 2
        crashed = await send(browser, "shout", {"arg/text": "crash"})
        assert "incident" in shown(crashed, "text")


async def test_prompts_and_resources_are_tried_as_well(project: Path) -> None:
    async with serving(project, workshop()) as site, site.browser() as browser:
        page = await browser.get("/tools")
        assert "/prompts/greet" in page
        rendered = (await browser.post("/prompts/greet", {"arg/name": "Ada"})).text
        assert "Hello Ada" in rendered
        read = await browser.get("/resources?uri=shop://sign")
        for each in (page, rendered, read):
            assert SCRIPT not in each
        assert shown(read, "content") == SCRIPT


async def test_the_list_names_costs_and_findings(project: Path) -> None:
    async with serving(project, workshop()) as site, site.browser() as browser:
        page = await browser.get("/tools")
        assert re.search(r'aria-label="\d+ tokens"', page)
        assert "findings</span>" in page
        assert "&lt;b&gt;loudly" in page
        found = re.findall(r'data-testid="tool">([^<]+)', await browser.get("/tools?q=picture", part=True))
        assert found == ["draw"]


async def test_what_does_not_exist_says_so(project: Path) -> None:
    async with serving(project, workshop()) as site, site.browser() as browser:
        for path in ("/tools/nothing", "/trials/0", "/prompts/nothing", "/resources?uri=shop://nothing", "/calls/0"):
            response = await browser.http.get(path)
            assert response.status_code == 400
            assert 'data-testid="error"' in response.text
        assert (await browser.post("/call/ship", {"json": "[1]"})).status_code == 400
