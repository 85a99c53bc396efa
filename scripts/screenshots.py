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
COLORS = 48
SERVER = ("trysquare", "serve", "calendar_server.py")


async def fill(shown: Showcase, project: Path) -> None:
    """Let every part have something to show."""
    await use_servers(shown)
    await change_definition(shown, project)
    await execute(shown.client, "find_issues", {}, server="tracker")
    await work_with_bot(shown, project)
    shown.ask("send_letter", to="ada@example.org", text="Dear Ada,\n\nyour order is on its way.\n\nThe shop\n")
    shown.ask("refund", order=1042, amount=12.5, note="damaged on arrival")


async def fill_form(window: Window) -> None:
    """Try the tool with a form of every kind."""
    values = {"order": "1042", "to/street": "Hafenstr. 3", "to/city": "Kiel", "weight": "1.5", "tags": "fragile"}
    for name, text in values.items():
        await window.fill(f"arg/{name}", text)
    await window.choose("arg/speed", '"fast"')
    await window.click("send")
    await window.appears("outcome")
    await window.evaluate("window.scrollTo(0, 0)")


async def explain(window: Window) -> None:
    """Explain a failing test."""
    await window.fill("target", FAILING)
    await window.click("explain")
    await window.do(["getByTestId", "source"], ["first"], ["waitFor", {"timeout": 120_000}])


async def nothing(window: Window) -> None:
    """Look only."""


PARTS: dict[str, tuple[str, Callable[[Window], Awaitable[None]]]] = {
    "needs": ("/", nothing),
    "tools": ("/tools", nothing),
    "tool": ("/tools/ship_order", fill_form),
    "servers": ("/servers", nothing),
    "calls": ("/calls", nothing),
    "bots": ("/bots/release/main", nothing),
    "jobs": ("/jobs/{job}", nothing),
    "failures": ("/failures", explain),
}


async def take(chromium: Chromium, shown: Showcase, folder: Path) -> None:
    """Every picture."""
    for screen, size in (("desktop", DESKTOP), ("phone", PHONE)):
        for look in ("light", "dark"):
            async with chromium.window(size=size, dark=look == "dark") as window:
                await shown.site.enter(window)
                for part, (path, prepare) in PARTS.items():
                    await window.open(shown.site.page + path.format(job=shown.job))
                    await prepare(window)
                    file = folder / f"{part}-{screen}-{look}.png"
                    await window.picture(file)
                    with Image.open(file) as picture:
                        picture.convert("RGB").quantize(COLORS).save(file, optimize=True)


async def look_around(home: Path, folder: Path) -> None:
    """Fill a project, and look at it."""
    with open_chromium() as chromium:
        async with showcase(home / PROJECT, command=SERVER) as shown, chromium.window() as keeper:
            await shown.site.enter(keeper)
            await fill(shown, home / PROJECT)
            await keeper.appears("question", nth=4)
            await take(chromium, shown, folder)


def main() -> None:
    """Take all pictures."""
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
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
