"""Links inside the project lead somewhere: the file is there, and the heading too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Page, all_pages, read_page


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def broken_links(page: Page) -> list[str]:
    """The page's links that lead nowhere, each with its line."""
    return [f"{page.name}:{line}: {target}" for line, target in page.links() if not _leads_somewhere(page, target)]


def _leads_somewhere(page: Page, target: str) -> bool:
    if "://" in target or target.startswith("mailto:"):
        return True
    file, _, anchor = target.partition("#")
    path = (page.path.parent / file).resolve() if file else page.path
    if not path.exists():
        return False
    return not anchor or anchor in read_page(path).anchors()


@pytest.mark.parametrize("path", all_pages(), ids=_name)
def test_each_link_of_the_page_leads_to_a_file_and_a_heading(path: Path) -> None:
    assert broken_links(read_page(path)) == []


def test_each_page_of_the_docs_can_be_reached_from_the_readme() -> None:
    start = ROOT / "README.md"
    reached, waiting = {start}, [start]
    while waiting:
        page = read_page(waiting.pop())
        targets = {(page.path.parent / target.partition("#")[0]).resolve() for _, target in page.links()}
        fresh = {target for target in targets if target.suffix == ".md" and target.exists()} - reached
        reached |= fresh
        waiting.extend(fresh)
    assert [_name(path) for path in all_pages() if path not in reached] == []


def test_a_link_to_a_missing_file_or_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n\n[a](#one) [b](#two) [c](other.md) `[d](gone.md)`\n", encoding="utf-8")
    assert broken_links(read_page(page)) == ["page.md:3: #two", "page.md:3: other.md"]
