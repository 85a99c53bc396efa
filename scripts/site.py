"""Builds the documentation site, with search, llms.txt and llms-full.txt: `python scripts/site.py [FOLDER]`.

The pages are written for a repository: they link to files outside of `docs`, and their code blocks carry marks for the
tests. So they are copied first, without the marks, together with the pages that they link to.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
STYLE = """\
.md-typeset table:not([class]) { font-size: 0.68rem; }
.md-typeset table:not([class]) code { word-break: break-word; white-space: normal; }
.md-typeset img { border-radius: 0.4rem; }
"""
_PICTURES = (".svg", ".png")
_NAMED = {ROOT / "README.md": "index.md", DOCS / "README.md": "contents.md"}
_LINK = re.compile(r"(?P<before>!?\[[^\]]*\]\()(?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?P<after>\))")
_FENCE = re.compile(r"^(?P<ticks> *`{3,})(?P<language>\w+)(?P<marks>.*)$", re.MULTILINE)
_TITLE = re.compile(r'title="[^"]*"')
_BLOCKS = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LIST = re.compile(r"^(?P<line>(?![*\-#|>]|\d+\.| |$).*)\n(?=(?:[*-]|\d+\.) )", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading of docs/README.md, and the pages below it in their order."""

    title: str
    pages: tuple[Path, ...]


def main() -> int:
    """Build the site into a folder, `site` unless another is named."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "site").resolve()
    with tempfile.TemporaryDirectory(prefix="trysquare-site-") as temporary:
        source = Path(temporary)
        sections = list(read_sections())
        pages = collect_pages()
        for page in pages:
            _write(source / "docs" / place_of(page), staged(page, pages))
        for picture in (each for suffix in _PICTURES for each in DOCS.rglob(f"*{suffix}")):
            place = source / "docs" / picture.relative_to(DOCS)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, place)
        _write(source / "docs" / "site.css", STYLE)
        _write(source / "zensical.toml", configuration(sections))
        done = subprocess.run([Path(sys.executable).parent / "zensical", "build", "--strict"], cwd=source, check=False)
        if done.returncode != 0:
            return done.returncode
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source / "site", folder)
        for page in pages:
            shutil.copy(source / "docs" / place_of(page), _write(folder / place_of(page), ""))
    _write(folder / "llms.txt", llms_text(sections))
    _write(folder / "llms-full.txt", "\n\n".join(staged(page, pages).rstrip() for page in pages) + "\n")
    sys.stdout.write(f"Wrote {len(pages)} pages. To read them: python -m http.server --directory {folder}\n")
    return 0


def read_sections() -> Iterator[Section]:
    """The order of the pages, from the list that readers of the repository see."""
    _, *parts = re.split(r"^## ", (DOCS / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    for part in parts:
        title, _, text = part.partition("\n")
        yield Section(title=title.strip(), pages=tuple(_linked(text, DOCS / "README.md")))


def _linked(text: str, page: Path) -> Iterator[Path]:
    for found in _LINK.finditer(_BLOCKS.sub("", text)):
        target = (page.parent / found["target"]).resolve()
        # The content of the example guide belongs to an invented team, and would only be found by mistake.
        if target.suffix == ".md" and target.is_file() and not target.is_relative_to(ROOT / "examples/guide/docs"):
            yield target


def collect_pages() -> list[Path]:
    """Every page that can be reached from the start page, those in the list first."""
    found = [ROOT / "README.md", DOCS / "README.md", *(page for section in read_sections() for page in section.pages)]
    for page in found:
        found.extend(each for each in _linked(page.read_text(encoding="utf-8"), page) if each not in found)
    return list(dict.fromkeys(found))


def place_of(page: Path) -> Path:
    """Where a page is on the site: docs at the top, everything else by its path in the repository."""
    if named := _NAMED.get(page):
        return Path(named)
    inside = page.relative_to(DOCS) if page.is_relative_to(DOCS) else Path("repository") / page.relative_to(ROOT)
    return inside.with_name("index.md") if inside.name == "README.md" else inside


def staged(page: Path, pages: list[Path]) -> str:
    """A page as the site shows it: links to where pages are, blocks without the marks of the tests."""

    def moved(found: re.Match[str]) -> str:
        target = (page.parent / found["target"]).resolve()
        if "://" in found["target"] or not target.exists():
            return found.group()
        if target in pages:
            there = os.path.relpath(place_of(target), place_of(page).parent)
        elif target.suffix in _PICTURES and target.is_relative_to(DOCS):
            there = os.path.relpath(target.relative_to(DOCS), place_of(page).parent)
        else:
            return found["before"].lstrip("!").removesuffix("(")[1:-1]  # A file that is only in the repository.
        return f"{found['before']}{there}{found['anchor'] or ''}{found['after']}"

    def unmarked(found: re.Match[str]) -> str:
        title = _TITLE.search(found["marks"])
        language = "text" if found["language"] == "output" else found["language"]
        return f"{found['ticks']}{language}{f' {title.group()}' if title else ''}"

    text = page.read_text(encoding="utf-8")
    start, parts = 0, list[str]()
    for block in _BLOCKS.finditer(text):
        parts += [_prose(text[start : block.start()], moved), _FENCE.sub(unmarked, block.group(), count=1)]
        start = block.end()
    return "".join([*parts, _prose(text[start:], moved)])


def _prose(text: str, moved: Callable[[re.Match[str]], str]) -> str:
    return _LIST.sub(r"\g<line>\n\n", _LINK.sub(moved, text))


def configuration(sections: list[Section]) -> str:
    """The configuration with the navigation; a page's first heading is its title there."""
    entries = [f"  {{ {json.dumps(section.title)} = {_paths(section)} }}," for section in sections]
    nav = "\n".join(["nav = [", '  { "Home" = ["index.md", "contents.md"] },', *entries, "]"])
    return (ROOT / "zensical.toml").read_text(encoding="utf-8").replace("[project]\n", f"[project]\n{nav}\n", 1)


def _paths(section: Section) -> str:
    return json.dumps([str(place_of(page)) for page in section.pages])


def llms_text(sections: list[Section]) -> str:
    """The list of pages for language models: https://llmstxt.org describes the form."""
    lines = ["# Trysquare", "", f"> {summary_of(ROOT / 'README.md')}", ""]
    lines += ["All pages in one file: [llms-full.txt](llms-full.txt)", ""]
    for section in sections:
        lines += [f"## {section.title}", ""]
        lines += [f"- [{title_of(page)}]({place_of(page)}): {summary_of(page)}" for page in section.pages]
        lines.append("")
    return "\n".join(lines)


def title_of(page: Path) -> str:
    """The first heading of a page."""
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def summary_of(page: Path) -> str:
    """The first sentence of a page, as plain text."""
    text = _LINK.sub(lambda found: found["before"].removesuffix("(")[1:-1], page.read_text(encoding="utf-8"))
    paragraphs = [part.strip() for part in text.split("\n\n")[1:]]
    first = next((part for part in paragraphs if part[:1].isalnum() or part.startswith("`")), "")
    return re.split(r"(?<=\.)\s", " ".join(first.split()), maxsplit=1)[0].rstrip(":")


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
