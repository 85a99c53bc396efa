"""The built documentation: every page, links that lead somewhere, no request to another host, and llms.txt."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.pages import ROOT, run_pages

pytestmark = pytest.mark.xdist_group("site")
# Attributes whose address a browser requests by itself, by the element that has them.
REQUESTED = {"script": "src", "img": "src", "iframe": "src", "link": "href", "source": "src", "use": "href"}
NOT_REQUESTED = ("canonical", "next", "prev", "alternate", "edit")
"""Kinds of `link` that are only a reference."""


class Read(HTMLParser):
    """What a page requests, where it links to, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.requested: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if anchor := values.get("id"):
            self.anchors.add(anchor)
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        requested = values.get(REQUESTED.get(tag, ""))
        if requested and values.get("rel") not in NOT_REQUESTED:
            self.requested.append(requested)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "built"
    built = subprocess.run(
        [sys.executable, ROOT / "scripts" / "site.py", folder], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Read]:
    found: dict[Path, Read] = {}
    for path in sorted(site.rglob("*.html")):
        found[path] = Read()
        found[path].feed(path.read_text(encoding="utf-8"))
    return found


def test_each_page_of_the_docs_is_on_the_site_and_in_the_lists_for_models(site: Path) -> None:
    docs = [path.relative_to(ROOT / "docs") for path in run_pages() if path.is_relative_to(ROOT / "docs")]
    inner = [path for path in docs if path.name != "README.md"]
    assert [str(path) for path in inner if not (site / path.with_suffix(".html")).is_file()] == []
    listed = (site / "llms.txt").read_text(encoding="utf-8")
    assert [str(path) for path in inner if f"]({path})" not in listed] == []
    whole = (site / "llms-full.txt").read_text(encoding="utf-8")
    titles = [(ROOT / "docs" / path).read_text(encoding="utf-8").partition("\n")[0] for path in inner]
    assert [title for title in titles if title not in whole] == []


def test_no_page_requests_anything_from_another_host(site: Path, pages: dict[Path, Read]) -> None:
    elsewhere = {each for read in pages.values() for each in read.requested if urlsplit(each).netloc}
    assert elsewhere == set()
    styles = [path for path in site.rglob("*.css") if "url(http" in path.read_text(encoding="utf-8")]
    assert styles == []


def broken_links(site: Path, pages: dict[Path, Read]) -> Iterator[str]:
    for path, read in pages.items():
        for link in read.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists() or (parts.fragment and target in pages and not _has(pages[target], parts.fragment)):
                yield f"{path.relative_to(site)}: {link}"


def _has(read: Read, anchor: str) -> bool:
    return unquote(anchor) in read.anchors or anchor.startswith("__")


def test_each_link_of_the_site_leads_to_a_page_and_a_heading(site: Path, pages: dict[Path, Read]) -> None:
    assert list(broken_links(site, pages)) == []


def test_the_search_finds_what_the_pages_say(site: Path) -> None:
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    found = [entry["location"] for entry in index["items"] if "TRYSQUARE_HTTP_TOKENS" in entry["text"]]
    assert any(location.startswith("production/deployment.html") for location in found)


def test_marks_of_the_tests_are_not_shown(site: Path) -> None:
    text = (site / "llms-full.txt").read_text(encoding="utf-8")
    assert "console background" not in text
    assert 'exit="1"' not in text


def test_the_recording_of_the_readme_shows_what_the_commands_print() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "scripts" / "recording.py", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
