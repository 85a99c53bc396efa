"""The files that browsers load: what is vendored is what its page says, and a first paint is small."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

from tests.console.conftest import HTML, serving
from trysquare.console.assets import FOLDER

ROOT = Path(__file__).parents[2]
FIRST_PAINT = 50_000


def test_vendored_files_are_those_of_their_page() -> None:
    page = (FOLDER / "static" / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"\| `([\w.-]+\.js)` \|.*`([\w-]+\.LICENSE)` \| `([0-9a-f]{64})` \|", page)
    assert {name for name, _, _ in named} == {"htmx.min.js", "htmx-sse.min.js"}
    for name, licence, digest in named:
        assert hashlib.sha256((FOLDER / "static" / name).read_bytes()).hexdigest() == digest
        assert "Permission to use, copy, modify" in (FOLDER / "static" / licence).read_text(encoding="utf-8")


async def test_a_first_paint_is_small(project: Path) -> None:
    async with serving(project) as site, site.browser() as browser:
        page = await browser.get("/")
        linked = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
        assert len(linked) == 5
        sent = 0
        for path in ["/", *linked]:
            async with browser.http.stream("GET", path, headers={**HTML, "accept-encoding": "gzip"}) as response:
                sent += len(b"".join([chunk async for chunk in response.aiter_raw()]))
        assert sent <= FIRST_PAINT


def test_who_does_not_ask_for_the_console_imports_nothing_of_it() -> None:
    program = (
        "import sys, trysquare.asgi, trysquare.cli.serve, trysquare.server.http.app\n"
        "print([name for name in sys.modules if name.startswith(('trysquare.console', 'starlette', 'jinja2'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_page_of_the_docs_lists_every_element_that_scripts_drive() -> None:
    templates = (path.read_text(encoding="utf-8") for path in sorted((FOLDER / "templates").glob("*.html")))
    used = {name for text in templates for name in re.findall(r'data-testid="([^"{}]+)"', text)}
    page = (ROOT / "docs" / "people" / "console.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`([a-z-]+)`", page[page.index("## Automating the page") : page.index("## Security")]))
    assert sorted(used - listed) == []
