"""People of a bot: who works on an action, who approves it, and what they say about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trysquare.bots.definition.model import BotDefinition
from trysquare.bots.workflow.machine import Position
from trysquare.bots.workflow.runs import Change
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.store.audit import utc_now

ASSIGNEES = "assignees"
"""Name of the note with the people of each behavior of a run."""
_COMMENTS = "comments "
_TOKEN = "token"
_REFERENCE = re.compile(r"https?://[^\s<>\"')\]]+|(?<![\w/.-])(?:[\w.-]+/[\w.-]+)?#\d+\b")


def is_one_of(subject: str, names: Iterable[str]) -> bool:
    """Whether a principal is named. A plain name is a local user or a bearer token; `*` stands for any characters."""
    authority, colon, own = subject.partition(":")
    plain = subject if not colon else own if authority == _TOKEN else None
    return any(_fits(name, subject if ":" in name else plain) for name in names)


def _fits(name: str, subject: str | None) -> bool:
    return subject is not None and re.fullmatch(re.escape(name).replace(r"\*", ".*"), subject, re.DOTALL) is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class People:
    """The people of the actions in one run: those of the definition, and those that the run names."""

    definition: BotDefinition
    notes: Mapping[str, Any]

    def assignees(self, position: Position) -> tuple[tuple[str, ...], ...]:
        """The lists that a principal must be in to close the action; a run can only narrow the definition's."""
        own = as_list(as_object(self.notes.get(ASSIGNEES)).get(position.behavior))
        lists = (self.definition.gates[position].assignees, tuple(map(str, own)))
        return tuple(each for each in lists if each)

    def reviewers(self, position: Position) -> tuple[str, ...]:
        return self.definition.gates[position].reviewers

    def may_close(self, subject: str, position: Position) -> bool:
        return all(is_one_of(subject, names) for names in self.assignees(position))

    def may_send_back(self, subject: str, position: Position) -> bool:
        """Assignees and reviewers may reject an action, or take it up again."""
        return self.may_close(subject, position) or is_one_of(subject, self.reviewers(position))

    def shown(self, position: Position) -> JsonObject:
        """The people of an action, for a response; empty without any."""
        assigned, reviewers = self.assignees(position), self.reviewers(position)
        fields: JsonObject = {"assigned_to": list(assigned[-1])} if assigned else {}
        return fields | ({"reviewers": list(reviewers)} if reviewers else {})

    def require_assignee(self, subject: str, positions: Sequence[Position]) -> None:
        """Refuse to close an action that is assigned to others."""
        for position in positions:
            if not self.may_close(subject, position):
                raise self._refusal(subject, position)

    def require_sender_back(self, subject: str, position: Position) -> None:
        """Refuse to reject or reopen an action of others."""
        if not self.may_send_back(subject, position):
            raise self._refusal(subject, position)

    def _refusal(self, subject: str, position: Position) -> ToolError:
        names = ", ".join(self.assignees(position)[-1])
        return ToolError(
            f"`{position}` is assigned to {names}, and this call is by {subject}. Nothing was changed.",
            code=ErrorCode.PERMISSION_DENIED,
            instruction="Tell the user who can do this, or work on another behavior.",
            fields=self.shown(position),
        )

    def reviewers_of(self, positions: Sequence[Position]) -> list[tuple[str, ...]]:
        return [names for each in positions if (names := self.reviewers(each))]

    def asking(self, context: CallContext, positions: Sequence[Position]) -> CallContext:
        """A context that asks a reviewer: another caller's client is not asked, so that a code is approved instead."""
        subject = context.principal.subject
        if all(is_one_of(subject, names) for names in self.reviewers_of(positions)):
            return context
        return replace(context, caller=CallContext().caller)

    def require_reviewer(self, subject: str | None, positions: Sequence[Position]) -> None:
        """Refuse an approval by somebody who is not a reviewer."""
        for names in self.reviewers_of(positions):
            if subject is None or not is_one_of(subject, names):
                raise ToolError(
                    f"The approval is by {subject}; only {', '.join(names)} can approve this. Nothing was closed.",
                    code=ErrorCode.PERMISSION_DENIED,
                    instruction="Send the same call again, and ask one of them to approve its code.",
                    fields={"reviewers": list(names)},
                )


def with_comment(change: Change, position: Position, text: str, *, by: str) -> Change:
    """A change that keeps a comment on an action, too. The audit has every comment, the run the latest ones."""
    comment: JsonObject = {"by": by, "at": utc_now(), "text": text}
    if found := references(text):
        comment["references"] = found
    appended = {**change.appended, f"{_COMMENTS}{position}": comment}
    return replace(change, appended=appended, audit={**change.audit, "comment": {"on": str(position), **comment}})


def comments_on(notes: Mapping[str, Any], position: Position) -> list[JsonObject]:
    """The latest comments on an action, oldest first."""
    return [as_object(each) for each in as_list(notes.get(f"{_COMMENTS}{position}"))]


def all_comments(notes: Mapping[str, Any]) -> dict[str, list[JsonObject]]:
    """The comments of a run by action."""
    found = {name.removeprefix(_COMMENTS): value for name, value in notes.items() if name.startswith(_COMMENTS)}
    return {path: [as_object(each) for each in as_list(value)] for path, value in sorted(found.items())}


def references(text: str) -> list[str]:
    """Links and numbers of issues and pull requests in a text, as they are written: nothing is fetched."""
    return list(dict.fromkeys(each.rstrip(".,;:") for each in _REFERENCE.findall(text)))
