"""Mending: a copy of a call's arguments that is changed place by place, with marks for what is left to fill in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from trysquare.core.arguments import type_text
from trysquare.core.error_places import Place
from trysquare.core.shortening import short
from trysquare.core.types import JsonObject


class Mending:
    """A copy of some arguments in the making. The caller's own values are never changed."""

    def __init__(self, raw: JsonObject) -> None:
        self.arguments: JsonObject = dict(raw)
        self._open: list[Place] = []

    def open_places(self) -> list[Place]:
        """The places with a blank that the caller has to fill in."""
        return list(self._open)

    def value_at(self, place: Place) -> Any:
        """What stands at a place."""
        inside: Any = self.arguments
        for part in place:
            if not _holds(inside, part):
                return None
            inside = inside[part]
        return inside

    def blank(self, place: Place, schema: JsonObject) -> None:
        """Leave a place to the caller, with a mark that says what belongs there."""
        if any(place[: len(known)] == known for known in self._open):
            return
        if place and not self.put(place, f"<{short(type_text(schema))}>"):
            # Nothing can stand there as the arguments are: what holds the place has to be written anew.
            place = ()
        self._open = [known for known in self._open if known[: len(place)] != place]
        self._open.append(place)

    def blank_key(self, place: Place, schema: JsonObject) -> None:
        """Leave the name of an entry to the caller, and keep its value."""
        mark = f"<{short(type_text(schema))}>"
        if any(place[: len(known)] == known for known in self._open) or not self.rename(place, mark):
            return
        self._open.append((*place[:-1], mark))

    def put(self, place: Place, value: Any) -> bool:
        """Set a place to a value; a list takes one behind its last. False if nothing can stand at the place."""
        holder, last = self._owned_holder(place), place[-1]
        if isinstance(holder, dict):
            holder[last] = value
        elif isinstance(holder, list) and isinstance(last, int) and 0 <= last <= len(cast(list[Any], holder)):
            holder[last : last + 1] = [value]
        else:
            return False
        return True

    def take(self, place: Place) -> Any:
        """Remove a place and return what stood there; None if nothing did."""
        holder = self._owned_holder(place)
        return holder.pop(place[-1]) if _holds(holder, place[-1]) else None

    def rename(self, place: Place, name: str) -> bool:
        """Give an entry of an object another name, in its old position. False if that name is taken."""
        holder = self._owned_holder(place)
        if not isinstance(holder, dict) or place[-1] not in holder or name in holder:
            return False
        own = cast(JsonObject, holder)
        entries = list(own.items())
        own.clear()
        own.update((name if key == place[-1] else key, value) for key, value in entries)
        return True

    def drop(self, names: Iterable[str]) -> None:
        """Remove arguments by name."""
        for name in names:
            self.arguments.pop(name, None)

    def _owned_holder(self, place: Place) -> Any:
        """The object or list that holds a place, copied on the way, since the inner ones are the caller's."""
        inside: Any = self.arguments
        for part in place[:-1]:
            if not _holds(inside, part) or not isinstance(inside[part], (dict, list)):
                return None
            inside[part] = inside[part].copy()
            inside = inside[part]
        return inside


def _holds(container: Any, part: str | int) -> bool:
    if isinstance(container, dict):
        return part in container
    return isinstance(container, list) and isinstance(part, int) and 0 <= part < len(cast(list[Any], container))
