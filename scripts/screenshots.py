"""Takes the pictures of the console: `python scripts/screenshots.py [FOLDER]`, for docs/people/console by default.

A real Chromium looks at a project with real servers, calls, a bot and a job: each part in light and dark, at a desk and
on a phone. It needs what the tests of the console need.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.console.chromium import DESKTOP, PHONE, Chromium, Window, open_chromium  # noqa: E402
from tests.console.showcase import (  # noqa: E402
    FAILING,
    Showcase,
    change_definition,
    execute,
    showcase,
    use_servers,
    work_with_bot,
)

FOLDER = ROOT / "docs" / "people" / "console"
PROJECT = "harbor-shop"
COLORS = 128
SERVER = ("trysquare", "serve", "calendar_server.py")


async def fill(shown: Showcase, project: Path, keeper: Window) -> None:
    """Let every part have something to show."""
    await use_servers(shown)
    await change_definition(shown, project)
    await execute(shown.client, "find_issues", {}, server="tracker")
    await work_with_bot(shown, project)
    await keeper.appears("question", nth=2)
    shown.ask("refund", order=1042, amount=12.5, note="damaged on arrival")
    await keeper.appears("question", nth=3)
    shown.ask("send_letter", to="ada@example.org", text="Dear Ada,\n\nyour order is on its way.\n\nThe shop\n")
    await keeper.appears("question", nth=4)


async def fill_form(window: Window) -> None:
    """Try the tool with a form of every kind."""
    values = {"order": "1042", "to/street": "Hafenstr. 3", "to/city": "Kiel", "weight": "1.5", "tags": "fragile"}
    for name, text in values.items():
        await window.fill(f"arg/{name}", text)
    await window.choose("arg/speed", '"fast"')
    await window.click("add/arg/lines")
    await window.fill("arg/lines/0/article", "Jacket")
    await window.click("send")
    await window.appears("outcome")
    await window.evaluate("window.scrollTo(0, 0)")


async def explain(window: Window) -> None:
    """Explain a failing test."""
    await window.fill("target", FAILING)
    await window.click("explain")
    await window.do(["getByTestId", "source"], ["first"], ["waitFor", {"timeout": 120_000}])


async def see_source(window: Window) -> None:
    """Look at the annotated source."""
    await window.appears("source")


async def nothing(window: Window) -> None:
    """Look only."""


async def see_map(window: Window) -> None:
    """Look at the story map."""
    await window.appears("story")
    await window.evaluate("document.querySelector('.story-map').scrollIntoView()")


async def see_job(window: Window) -> None:
    """Open a call of the job."""
    await window.do(["locator", ".timeline .call summary"], ["first"], ["click"])


PARTS: dict[str, tuple[str, Callable[[Window], Awaitable[None]]]] = {
    "needs": ("/", nothing),
    "tools": ("/tools", nothing),
    "tool": ("/tools/ship_order", fill_form),
    "servers": ("/servers", nothing),
    "calls": ("/calls", nothing),
    "bots": ("/bots/release/main", nothing),
    "map": ("/bots/story/main", see_map),
    "jobs": ("/jobs/{job}", see_job),
    "failures": ("{failure}", see_source),
}


async def take(chromium: Chromium, shown: Showcase, folder: Path) -> None:
    """Every picture, all in one window: an explanation belongs to its session."""
    async with chromium.window() as window:
        await shown.site.enter(window, "/failures")
        await explain(window)
        known = {"job": shown.job, "failure": await window.evaluate("location.pathname")}
        for part, (path, prepare) in PARTS.items():
            for screen, (width, height) in (("desktop", DESKTOP), ("phone", PHONE)):
                await window.do(["setViewportSize", {"width": width, "height": height}])
                await window.open(shown.site.page + path.format(**known))
                await prepare(window)
                for look in ("light", "dark"):
                    await window.do(["emulateMedia", {"colorScheme": look}])
                    file = folder / f"{part}-{screen}-{look}.png"
                    await window.picture(file)
                    with Image.open(file) as picture:
                        few = picture.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
                        few.save(file, optimize=True)


async def look_around(home: Path, folder: Path) -> None:
    """Fill a project, and look at it."""
    with open_chromium() as chromium:
        async with showcase(home / PROJECT, command=SERVER) as shown, chromium.window() as keeper:
            await shown.site.enter(keeper)
            await fill(shown, home / PROJECT, keeper)
            await take(chromium, shown, folder)


def main() -> None:
    """Take all pictures."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ada-") as home:
        (Path(home) / PROJECT).mkdir()
        (Path(home) / PROJECT / "trysquare.toml").touch()
        # Neither the user nor the places of this machine are in the pictures.
        os.environ.update({name: f"{home}/{name}" for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")})
        os.environ.update(HOME=home, LOGNAME="ada", PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        os.chdir(Path(home) / PROJECT)
        asyncio.run(look_around(Path(home), folder))
    pictures = list(folder.glob("*.png"))
    size = sum(path.stat().st_size for path in pictures)
    sys.stdout.write(f"{len(pictures)} pictures, {size / 1000:.0f} kB, in {folder}\n")


if __name__ == "__main__":
    main()
