"""Checks of a project's content as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from trysquare.core.errors import ToolError
from trysquare.guide.contradictions import contradictions
from trysquare.guide.documents import Document
from trysquare.guide.exports import remembered
from trysquare.guide.expression import parse_expression
from trysquare.guide.projects import Project
from trysquare.guide.retrieval import included_text
from trysquare.guide.selection import select
from trysquare.guide.templates import render

Kind: TypeAlias = Literal["unreadable", "reference", "template", "contradiction", "unaccepted"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A problem: kind, location and message."""

    kind: Kind
    where: str
    message: str


def check_content(project: Project) -> list[Finding]:
    """All problems of a project's content."""
    checks = (_unreadable, _references, _templates, _contradictions, _unaccepted)
    return [finding for check in checks for finding in check(project)]


def _unaccepted(project: Project) -> Iterator[Finding]:
    for stored in project.stored.all():
        if stored.accepted_by is None:
            name = f"{stored.category}/{stored.name}"
            written = f"An agent wrote it (for {stored.written_by}, {stored.written_at[:19]}), not accepted yet."
            way_out = f"Look at it and run `trysquare guide accept {name}`, or have it removed."
            yield Finding(kind="unaccepted", where=name, message=f"{written} {way_out}")


def _unreadable(project: Project) -> Iterator[Finding]:
    # Reading every document is what finds those that cannot be read.
    for category in project.categories():
        project.documents(category.name)
    for problem in project.problems():
        yield Finding(kind="unreadable", where=problem.path, message=problem.reason)


def _references(project: Project) -> Iterator[Finding]:
    named = [
        *((f"collection {each.name}", each.name) for each in project.collections()),
        *((f"preset {name}", text) for name, preset in project.presets().items() for text in preset.expressions),
        *((f"export {entry.path}", entry.expression) for entry in remembered(project)),
    ]
    reported: set[str] = set()
    for where, expression in named:
        for message in _faults(project, expression):
            # A fault of an inner collection shows in every collection around it; once is enough.
            if message not in reported:
                reported.add(message)
                yield Finding(kind="reference", where=where, message=message)


def _faults(project: Project, expression: str) -> tuple[str, ...]:
    try:
        return select(parse_expression(expression), project).warnings
    except ToolError as error:
        return (error.message,)


def _templates(project: Project) -> Iterator[Finding]:
    flags = project.flag_values()
    for document in (each for category in project.categories() for each in project.documents(category.name)):
        try:
            render(document, flags=flags, include=lambda name: included_text(project, name))
        except ToolError as error:
            yield Finding(kind="template", where=str(document.id), message=error.message)


def _contradictions(project: Project) -> Iterator[Finding]:
    documents = {str(each.id): each for one in project.categories() for each in project.documents(one.name)}
    for found in contradictions(list(documents.values())):
        one, other = found.places
        if _never_together(documents[one.document], documents[other.document]):
            continue
        yield Finding(
            kind="contradiction",
            where=f"{one.document}:{one.line}",
            message=f"`{one.text}` is the opposite of `{other.text}` in {other.document}:{other.line}.",
        )


def _never_together(one: Document, other: Document) -> bool:
    """Whether a flag that shows one document hides the other: then no answer holds both."""
    shared = one.requires.keys() & other.requires.keys()
    return any((one.requires[name] is False) != (other.requires[name] is False) for name in shared)
