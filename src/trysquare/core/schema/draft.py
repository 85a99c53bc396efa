"""ArgumentsDraft: a copy of a call's arguments that becomes the corrected call, by candidates, guesses and blanks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, cast

from trysquare.core.json import JsonObject, JsonPath, as_list, as_object, holds
from trysquare.core.schema.coercion import ABSENT, Candidate, Candidates, conversions, guesses, is_blank
from trysquare.core.schema.describe import path_text, type_text
from trysquare.core.schema.validator import NAME_KEYWORDS, Problem, compile_schema, expected_schema
from trysquare.core.text import closest_names, truncate
from trysquare.core.untrusted import cleaned_text

_MAX_ROUNDS, _MAX_FILLS, _MAX_RENAMED = 40, 3, 20


class ArgumentsDraft:
    """A copy of the arguments being repaired, with marks for what to fill in. The caller's own values never change."""

    def __init__(self, given: JsonObject, whole: JsonObject, check: Callable[[JsonObject], list[Problem]]) -> None:
        self.arguments: JsonObject = dict(given)
        self.whole = whole
        self.open_paths: list[JsonPath] = []
        """The paths with a blank that the caller has to fill in."""
        self._check = check

    def problems(self) -> list[Problem]:
        return self._check(self.arguments)

    def is_open(self, path: JsonPath) -> bool:
        """Whether a path is at or inside a blank."""
        return any(path[: len(blank)] == blank for blank in self.open_paths)

    def value_at(self, path: JsonPath) -> Any:
        inside: Any = self.arguments
        for part in path:
            if not holds(inside, part):
                return None
            inside = inside[part]
        return inside

    def holds(self, path: JsonPath) -> bool:
        """Whether there is a value at a path; something above it may have been repaired away."""
        return not path or holds(self.value_at(path[:-1]), path[-1])

    def put(self, path: JsonPath, value: Any) -> bool:
        """Set a path to a value; a list takes one behind its last. False if nothing can be set there."""
        holder, last = self._owned_holder(path), path[-1]
        if isinstance(holder, dict):
            holder[last] = value
        elif isinstance(holder, list) and isinstance(last, int) and 0 <= last <= len(cast(list[Any], holder)):
            holder[last : last + 1] = [value]
        else:
            return False
        return True

    def take(self, path: JsonPath) -> Any:
        """Remove a path and return its value, or None."""
        holder = self._owned_holder(path)
        return holder.pop(path[-1]) if holds(holder, path[-1]) else None

    def rename(self, path: JsonPath, name: str) -> bool:
        """Rename an entry of an object, in its old position. False if that name is taken."""
        holder = self._owned_holder(path)
        if not isinstance(holder, dict) or path[-1] not in holder or name in holder:
            return False
        own = cast(JsonObject, holder)
        entries = list(own.items())
        own.clear()
        own.update((name if key == path[-1] else key, value) for key, value in entries)
        return True

    def blank(self, path: JsonPath, schema: JsonObject) -> bool:
        """Leave a value to the caller, with a mark of its type. False if nothing can be set there."""
        if not self.is_open(path):
            if not path or not self.put(path, _mark(schema)):
                return False
            self.open_paths = [*(known for known in self.open_paths if known[: len(path)] != path), path]
        return True

    def blank_key(self, path: JsonPath, schema: JsonObject) -> bool:
        """Leave the name of an entry to the caller and keep its value."""
        mark = _mark(schema)
        if not self.is_open(path):
            if not self.rename(path, mark):
                return False
            self.open_paths.append((*path[:-1], mark))
        return True

    def try_values(self, problems: list[Problem], candidates: Candidates) -> list[str]:
        """Try candidates for all refused values at once, until each is accepted or has none left. Returns notes."""
        waiting: dict[JsonPath, Iterator[Candidate]] = {}
        accepted: dict[JsonPath, str] = {}
        wrapped: dict[JsonPath, Any] = {}
        for _ in range(_MAX_ROUNDS):
            tried: dict[JsonPath, Any] = {}
            for problem in problems:
                path = problem.path
                if not path or path in tried or problem.keyword in NAME_KEYWORDS:
                    continue
                if self.is_open(path) or not self.holds(path):
                    continue
                value = self.value_at(path)
                candidate = next(waiting.setdefault(path, candidates(value, problem.schema, self.whole)), None)
                if candidate is not None and self._replace(path, candidate.value):
                    tried[path], accepted[path] = value, candidate.note
                    if candidate.is_wrapped:
                        wrapped[path] = value
            if not tried:
                break
            problems = self.problems()
            for path in {problem.path for problem in problems} & tried.keys():
                self.put(path, tried[path])
                del accepted[path]
        # A list around a value that is not a valid item does not help.
        for path in {problem.path[:-1] for problem in problems} & wrapped.keys() & accepted.keys():
            self.put(path, wrapped[path])
            del accepted[path]
        return [f"`{path_text(path)}`: {note}." for path, note in accepted.items()]

    def _replace(self, path: JsonPath, value: Any) -> bool:
        if value is not ABSENT:
            return self.put(path, value)
        # An item that is left out would move all that follow.
        if isinstance(path[-1], int):
            return False
        self.take(path)
        return True

    def _owned_holder(self, path: JsonPath) -> Any:
        """The object or list around a path, copied on the way, since the inner ones are the caller's."""
        inside: Any = self.arguments
        for part in path[:-1]:
            if not holds(inside, part) or not isinstance(inside[part], (dict, list)):
                return None
            inside[part] = inside[part].copy()
            inside = inside[part]
        return inside


def suggest(draft: ArgumentsDraft, problems: list[Problem]) -> tuple[bool, dict[JsonPath, JsonPath]]:
    """Carry a draft on to where it would fit, by guesses and blanks.

    Returns whether it fits outside the open paths, and for unknown names the known ones that were probably meant.
    """
    renamed = _rename_closest(draft, problems)
    draft.try_values(draft.problems(), guesses)
    is_complete = _fill(draft)
    if is_complete:
        _conform(draft)
    return is_complete, renamed


def _fill(draft: ArgumentsDraft) -> bool:
    """Put defaults and blanks where something is missing or wrong. False if that is not enough."""
    for _ in range(_MAX_FILLS):
        left = [problem for problem in draft.problems() if not draft.is_open(problem.path)]
        if not left:
            return True
        if not all(_fill_one(draft, problem) for problem in left):
            return False
    return all(draft.is_open(problem.path) for problem in draft.problems())


def _fill_one(draft: ArgumentsDraft, problem: Problem) -> bool:
    path, schema = problem.path, expected_schema(problem, draft.whole) if problem.path else problem.schema
    if problem.keyword == "propertyNames":
        return draft.blank_key(path, schema)
    if problem.keyword == "additionalProperties":
        draft.take(path)
        return True
    if problem.keyword == "required" and "default" in schema:
        return draft.put(path, schema["default"])
    return draft.blank(path, schema)


def _conform(draft: ArgumentsDraft) -> None:
    """Write values that the check takes in another form, such as "5" for 5, in the one that the schema names."""
    before, wrong = draft.arguments, len(draft.problems())
    written = ArgumentsDraft(before, draft.whole, compile_schema(draft.whole).problems)
    written.open_paths = draft.open_paths
    written.try_values(written.problems(), conversions)
    draft.arguments = written.arguments
    if len(draft.problems()) > wrong:
        draft.arguments = before


def _rename_closest(draft: ArgumentsDraft, problems: list[Problem]) -> dict[JsonPath, JsonPath]:
    """Take unknown names out; the value of each goes to the closest known name that is free."""
    renamed: dict[JsonPath, JsonPath] = {}
    unknown = [problem for problem in problems if problem.keyword == "additionalProperties"]
    for number, problem in enumerate(unknown):
        *inside, name = problem.path
        value = draft.take(problem.path)
        holder = as_object(draft.value_at(tuple(inside)))
        free = [one for one in as_object(problem.schema.get("properties")) if one not in holder]
        if number < _MAX_RENAMED and (close := closest_names(str(name), free)):
            renamed[problem.path] = (*inside, close[0])
            draft.put((*inside, close[0]), value)
    for problem in problems:
        if problem.keyword == "propertyNames":
            choices = [str(choice) for choice in as_list(expected_schema(problem, draft.whole).get("enum"))]
            used = as_object(draft.value_at(problem.path[:-1]))
            if close := closest_names(str(problem.path[-1]), (one for one in choices if one not in used)):
                draft.rename(problem.path, close[0])
    return renamed


def without_blanks(draft: ArgumentsDraft, problems: list[Problem], foreign: Collection[str]) -> list[Problem]:
    """Leave out what says "none" where nothing has to be given. Returns the problems that are left.

    `foreign` are arguments of the tool's other actions: strict function calling fills in every one of them.
    """
    for problem in problems:
        path = problem.path
        is_foreign = len(path) == 1 and problem.keyword == "additionalProperties" and path[0] in foreign
        if not path or isinstance(path[-1], int) or not draft.holds(path):
            continue
        if problem.keyword in NAME_KEYWORDS and not is_foreign:
            continue
        value = draft.value_at(path)
        if is_blank(value) or (is_foreign and not value):
            draft.take(path)
            if any(each.keyword == "required" and each.path == path for each in draft.problems()):
                draft.put(path, value)
    return draft.problems()


def _mark(schema: JsonObject) -> str:
    return f"<{truncate(cleaned_text(type_text(schema)))}>"
