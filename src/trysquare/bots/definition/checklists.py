"""Checklists of other tools, as outlines of a bot: spec-kit, OpenSpec, and any Markdown file with checkboxes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.files.root import DirectoryRoot

Layout: TypeAlias = Literal["spec-kit", "OpenSpec", "Markdown"]
MAX_FILE = 2_000_000
MAX_ITEMS = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """One checkbox of a list."""

    text: str
    done: bool
    line: int
    under: tuple[str, ...] = ()
    """The headings between its group and itself."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """The checkboxes below one heading, with what is written there."""

    title: str
    items: tuple[Item, ...]
    texts: tuple[str, ...] = ()
    file: str = ""
    documents: tuple[str, ...] = ()
    """Files that whoever works on it has to know."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outline:
    """What was found in a project: groups of items in order."""

    layout: Layout
    root: Path
    name: str
    title: str
    groups: tuple[Group, ...]
    documents: tuple[str, ...] = ()
    """Files that hold for all groups."""
    left_out: tuple[str, ...] = ()
    """Parts of the project without a checkbox, each with the reason."""

    @property
    def items(self) -> list[Item]:
        return [item for group in self.groups for item in group.items]


def read_outline(path: Path) -> Outline:
    """Recognize what is at a path, and read it; nothing is written."""
    path = path.resolve()
    if path.is_file():
        return _of_file(path)
    if not path.is_dir():
        raise ConfigurationError("no such file or directory.", where=str(path), hint="Name a project or a file.")
    with DirectoryRoot(path) as folder:
        marked = ".specify" in folder.folders()
        found = _openspec(path, folder)
        found = found or (None if marked else _single(path, folder)) or _speckit(path, folder, marked=marked)
    if found is None:
        raise ConfigurationError(
            "no project of spec-kit or OpenSpec was found.",
            where=str(path),
            hint="It has neither specs/NAME/tasks.md nor openspec/changes/NAME/tasks.md. Name a Markdown file with "
            "checkboxes, such as TODO.md.",
        )
    return found


def _of_file(path: Path) -> Outline:
    with DirectoryRoot(path.parent) as folder:
        text = _text(folder, path.name, path)
    title, groups = read_groups(text, file=path.name)
    if not groups:
        raise ConfigurationError(
            "this file has no checkbox.",
            where=str(path),
            hint="Write what is to do as `- [ ] text`, and what is done as `- [x] text`.",
        )
    title = title or path.stem
    return Outline(layout="Markdown", root=path.parent, name=path.stem, title=title, groups=_bounded(groups, path))


def _openspec(root: Path, folder: DirectoryRoot) -> Outline | None:
    names = set(folder.folders())
    if "openspec" in names:
        base = "openspec/"
    elif root.name == "openspec" and names & {"changes", "specs"}:
        base = ""
    else:
        return None
    changes = f"{base}changes"
    active = [name for name in _folders(folder, changes) if name != "archive"]
    shared = [path for name in ("project.md", "config.yaml", "AGENTS.md") if _has(folder, path := f"{base}{name}")]
    name = root.parent.name if base == "" else root.name
    return _of_lists(root, folder, "OpenSpec", name, [f"{changes}/{each}" for each in active], shared)


def _speckit(root: Path, folder: DirectoryRoot, *, marked: bool) -> Outline | None:
    places = ("specs", ".specify/specs")
    features = [f"{place}/{name}" for place in places for name in _folders(folder, place)]
    known = [each for each in features if marked or any(_has(folder, f"{each}/{name}") for name in _FEATURE)]
    if not marked and not known:
        return None
    shared = [path for path in (".specify/memory/constitution.md", "memory/constitution.md") if _has(folder, path)]
    return _of_lists(root, folder, "spec-kit", root.name, known, shared)


_FEATURE = ("spec.md", "plan.md", "tasks.md")


def _single(root: Path, folder: DirectoryRoot) -> Outline | None:
    """The folder of one feature or one change."""
    if not _has(folder, "tasks.md"):
        return None
    layout = "OpenSpec" if _has(folder, "proposal.md") else "spec-kit" if _has(folder, "spec.md") else "Markdown"
    return _of_lists(root, folder, layout, root.name, [""], [])


def _of_lists(
    root: Path, folder: DirectoryRoot, layout: Layout, name: str, parts: Sequence[str], shared: Sequence[str]
) -> Outline:
    """The outline of folders with a `tasks.md` each: of one its headings, of several a group for each."""
    lists = list[tuple[str, str | None, tuple[Group, ...]]]()
    left_out = list[str]()
    for part in parts:
        tasks = f"{part}/tasks.md".lstrip("/")
        if not _has(folder, tasks):
            left_out.append(f"{part}: no tasks.md")
            continue
        title, groups = read_groups(_text(folder, tasks, root / tasks), file=tasks)
        if not groups:
            left_out.append(f"{tasks}: no checkbox")
            continue
        documents = tuple(_documents(folder, part, tasks))
        lists.append((part, title, tuple(_with_documents(each, documents) for each in groups)))
    if not lists:
        what = "feature" if layout == "spec-kit" else "active change"
        said = f" ({'; '.join(left_out)})" if left_out else ""
        hint = "Write the tasks first, or name another project."
        raise ConfigurationError(f"no {what} has tasks{said}.", where=str(root), hint=hint)
    if len(lists) == 1:
        part, title, groups = lists[0]
        name, title = PurePosixPath(part).name or name, title or PurePosixPath(part).name or name
    else:
        title, groups = name, tuple(_as_one(part, heading, groups) for part, heading, groups in lists)
    return Outline(
        layout=layout,
        root=root,
        name=name,
        title=title,
        groups=_bounded(groups, root),
        documents=tuple(shared),
        left_out=tuple(left_out),
    )


def _bounded(groups: Sequence[Group], where: Path) -> tuple[Group, ...]:
    count = sum(len(each.items) for each in groups)
    if count > MAX_ITEMS:
        message, hint = f"it has {count:,} checkboxes; a bot has at most {MAX_ITEMS:,} actions.", "Import a part of it."
        raise ConfigurationError(message, where=str(where), hint=hint)
    return tuple(groups)


def _with_documents(group: Group, documents: tuple[str, ...]) -> Group:
    return Group(title=group.title, items=group.items, texts=group.texts, file=group.file, documents=documents)


def _as_one(part: str, title: str | None, groups: Sequence[Group]) -> Group:
    """The groups of one list as a single one; their headings stay with the items."""

    def under(group: Group) -> Iterator[Item]:
        for item in group.items:
            yield Item(
                text=item.text, done=item.done, line=item.line, under=(group.title, *item.under), notes=item.notes
            )

    first = groups[0]
    return Group(
        title=PurePosixPath(part).name or title or "tasks",
        items=tuple(item for group in groups for item in under(group)),
        texts=() if title is None else (title,),
        file=first.file,
        documents=first.documents,
    )


def _documents(folder: DirectoryRoot, part: str, tasks: str) -> Iterator[str]:
    """The other Markdown files of a feature or change, and of its specs."""
    for entry in folder.walk(part or "."):
        path = PurePosixPath(entry.path)
        if path.suffix == ".md" and str(path) != tasks and "checklists" not in path.parts:
            yield str(path)


def _folders(folder: DirectoryRoot, path: str) -> list[str]:
    try:
        return sorted(folder.folders(path))
    except ToolError:
        return []


def _has(folder: DirectoryRoot, path: str) -> bool:
    try:
        folder.stat(path)
    except ToolError:
        return False
    return True


def _text(folder: DirectoryRoot, path: str, where: Path) -> str:
    try:
        return folder.read_bytes(path, limit=MAX_FILE).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"this is not UTF-8 text (byte {error.start})."
        raise ConfigurationError(message, where=str(where), hint="Name a Markdown file.") from None
    except ToolError as error:
        raise ConfigurationError(error.message, where=str(where), hint=error.instruction) from None


_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_ITEM = re.compile(r"(?P<indent>\s*)(?:[-*+]|\d{1,9}[.)])\s*\[(?P<box>[xX]|[^\[\]\w]|)\](?=\s|$)\s*(?P<text>.*)$")
_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})")
_DONE = frozenset("xX✓✔☑")


@dataclass(slots=True)
class _Section:
    """A heading with what stands directly below it."""

    title: str
    level: int
    texts: list[str] = field(default_factory=list[str])
    items: list[Item] = field(default_factory=list[Item])
    inner: list[_Section] = field(default_factory=list["_Section"])

    def count(self) -> int:
        return len(self.items) + sum(each.count() for each in self.inner)


def read_groups(text: str, *, file: str = "") -> tuple[str | None, tuple[Group, ...]]:
    """The title of a Markdown text, and its checkboxes by heading.

    The groups are the highest headings that tell items apart: below a single heading for all of them, those are its
    own. Checkboxes of code blocks and comments are none.
    """
    top = _sections(text)
    title = top.inner[0].title if len(top.inner) == 1 and not top.items else None
    level = top
    while not level.items:
        full = [each for each in level.inner if each.count()]
        if len(full) != 1 or not any(each.count() for each in full[0].inner):
            break
        level = full[0]
    groups = list[Group]()
    if level.items:
        own = level.title or title or "Tasks"
        groups.append(Group(title=own, items=tuple(level.items), texts=_paragraphs(level.texts), file=file))
    for each in level.inner:
        if each.count():
            texts = tuple(text for section in _all(each) for text in _paragraphs(section.texts))
            groups.append(Group(title=each.title or "Tasks", items=tuple(_items(each)), texts=texts, file=file))
    return title, tuple(groups)


def _all(section: _Section) -> Iterator[_Section]:
    yield section
    for each in section.inner:
        yield from _all(each)


def _items(section: _Section, under: tuple[str, ...] = ()) -> Iterator[Item]:
    for item in section.items:
        yield Item(text=item.text, done=item.done, line=item.line, under=under, notes=item.notes)
    for each in section.inner:
        yield from _items(each, (*under, each.title))


def _paragraphs(lines: Sequence[str]) -> tuple[str, ...]:
    """The paragraphs of a text, without rules between sections."""
    found = (" ".join(part.split()) for part in re.split(r"\n\s*\n", "\n".join(lines)))
    return tuple(part for part in found if part.strip("-*_ "))


def _sections(text: str) -> _Section:
    top = _Section("", 0)
    open_sections, before = [top], ""
    lines = _visible(text)
    for number, line in lines:
        heading = _heading(line, before)
        if heading is not None:
            level, title = heading
            if not line.lstrip().startswith("#"):
                open_sections[-1].texts.pop()
            while open_sections[-1].level >= level:
                open_sections.pop()
            section = _Section(title, level)
            open_sections[-1].inner.append(section)
            open_sections.append(section)
        else:
            _add_line(open_sections[-1], number, line)
        before = "" if heading is not None or _ITEM.match(line) or _BULLET.match(line) else line
    return top


def _heading(line: str, before: str) -> tuple[int, str] | None:
    found = _HEADING.match(line)
    if found is not None:
        return len(found[1]), _plain(found[2] or "")
    under = _UNDERLINE.match(line)
    if under is not None and before.strip() and not before.startswith((" ", "\t", ">", "|")):
        return (1 if under[1].startswith("=") else 2), _plain(before)
    return None


def _add_line(section: _Section, number: int, line: str) -> None:
    found = _ITEM.match(line)
    if found is not None:
        done = found["box"] in _DONE and bool(found["box"])
        text = found["text"].strip() or f"Line {number}"
        section.items.append(Item(text=text, done=done, line=number))
        section.texts.append("")
        return
    last = section.items[-1] if section.items else None
    belongs = last is not None and line[:1] in (" ", "\t") and bool(line.strip())
    if last is not None and belongs:
        note = Item(text=last.text, done=last.done, line=last.line, notes=(*last.notes, line.strip()))
        section.items[-1] = note
    else:
        section.texts.append(line)


def _plain(text: str) -> str:
    """A heading without emphasis and links."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[*`]+", "", text).strip()


def _visible(text: str) -> list[tuple[int, str]]:
    """The numbered lines of a text, without front matter, comments and code blocks that end."""
    text = re.sub(r"<!--.*?-->", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    lines = list(enumerate(text.splitlines(), start=1))
    if lines and lines[0][1].rstrip() == "---":
        end = next((index for index, (_, line) in enumerate(lines[1:], start=1) if line.rstrip() == "---"), None)
        lines = lines if end is None else lines[end + 1 :]
    found, index = list[tuple[int, str]](), 0
    while index < len(lines):
        end = _end_of_code(lines, index)
        if end is None:
            found.append(lines[index])
        index = index + 1 if end is None else end + 1
    return found


def _end_of_code(lines: Sequence[tuple[int, str]], start: int) -> int | None:
    """The index of the line that ends the code block that begins here; None where none does."""
    fence = _FENCE.match(lines[start][1])
    if fence is None:
        return None
    mark = fence["fence"]
    for index in range(start + 1, len(lines)):
        line = lines[index][1].strip()
        if line.startswith(mark) and not line.strip(mark[0]):
            return index
    return None
