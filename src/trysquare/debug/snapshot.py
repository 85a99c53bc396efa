"""Snapshot of a stopped program: code, locals within a token budget, changes; the log of stops."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from trysquare.core.json import JsonObject
from trysquare.core.redaction import MASK, mask_shown, names_secret
from trysquare.core.tokens import count_tokens
from trysquare.debug.debugger import Debugger, ExceptionInfo, Frame, NotReadable, RequestFailed, Stopped, Variable
from trysquare.debug.sessions.session import DebugSession

LONGEST = 160
_MAX_LEFT_OUT = 10
"""Number of omitted values whose names are shown."""
_QUOTES = ("'", '"')
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_DEFINITIONS = ("module", "function", "type", "builtin_function_or_method", "ABCMeta", "Function", "Object")
"""Types of values that are rarely of interest."""
_OWN_NAMES = ("special variables", "function variables", "class variables", "return values", "(return)", "len()")


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """Values within a token budget, and the names of the others."""

    values: Mapping[str, str]
    left_out: tuple[str, ...] = ()

    def about_left_out(self) -> JsonObject:
        """Fields of a result for the values that it omits."""
        if not self.left_out:
            return {}
        shown = len(self.values)
        return {
            "truncated": True,
            "total_variables": shown + len(self.left_out),
            "showing_variables": shown,
            "left_out": list(self.left_out[:_MAX_LEFT_OUT]),
        }


def text_of(variable: Variable, *, longest: int = LONGEST) -> str:
    """The text of a value: secrets masked, without addresses, truncated."""
    text = _ADDRESS.sub("", variable.value)
    if not variable.shows_all:
        if any(quote in text for quote in _QUOTES) and len(text) > 2 and names_secret(variable.name):
            return MASK
        text = mask_shown(text)
    if len(text) <= longest and not variable.is_cut:
        return text
    size = variable.size or (f"{variable.indexed} items" if variable.indexed else "")
    return f"{text[: longest - 1]}…{f' ({size})' if size else ''}"


def ranked(
    variables: Sequence[Variable], *, line: str = "", changed: frozenset[str] = frozenset(), error: str = ""
) -> list[Variable]:
    """Values by relevance: changed since the last stop, named on the current line or in the error message."""
    on_line = set(_NAME.findall(line))
    in_error = set(_NAME.findall(error))

    def weight(variable: Variable) -> int:
        name = variable.name
        rarely = 2 * name.startswith("__") + 3 * ((variable.type or "") in _DEFINITIONS)
        return 4 * (name in changed) + 3 * (name in on_line) + 2 * (name in in_error) - rarely

    return sorted((each for each in variables if each.name not in _OWN_NAMES), key=weight, reverse=True)


def within_budget(variables: Sequence[Variable], budget: int) -> Shown:
    """As many values as fit the token budget, in order; long ones are truncated more as it runs out."""
    values: dict[str, str] = {}
    left = budget
    for index, variable in enumerate(variables):
        longest = LONGEST if left > budget // 3 else LONGEST // 3
        text = text_of(variable, longest=longest)
        cost = count_tokens(f"{variable.name}: {text}\n")
        if cost > left:
            return Shown(values=values, left_out=tuple(each.name for each in variables[index:]))
        values[variable.name] = text
        left -= cost
    return Shown(values=values)


CONTEXT_LINES = 3
BUDGET = 800
_SEARCHED_FRAMES = 100
_MAX_READABLE = 60
"""Variables of a frame whose parts are read: each may cost several requests to the debugger."""
_INSTALLED = frozenset({"site-packages", "dist-packages", "node_modules"})
"""Directories inside a workspace whose code is not the user's."""
_MAX_CHANGES = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The innermost frame of one stop."""

    frame: Frame
    code: str
    values: Shown
    texts: Mapping[str, str]
    """The text of every local, to compare at the next stop."""
    changed: Mapping[str, str]
    depth: int
    watched: Mapping[str, str]
    index: int = 0
    """Number of frames further in."""
    raised_in: Frame | None = None
    """The innermost frame, where that is another one."""
    exception: ExceptionInfo | None = None

    @property
    def location(self) -> str:
        return f"{self.frame.file}:{self.frame.line} in {self.frame.name}"


async def take_snapshot(
    debugger: Debugger,
    stop: Stopped,
    *,
    budget: int = BUDGET,
    root: Path | None = None,
    earlier: Snapshot | None = None,
    watched: Sequence[str] = (),
) -> Snapshot | None:
    """Inspect the frame of a stop, or None where the debugger shows none.

    At an exception it is the innermost frame of the user's own code: the runtime raises, panics and aborts in its own.
    So it is at the entry, where the first line may be one of an inlined function.
    """
    is_users = stop.reason in ("exception", "entry") and root is not None
    frames, total = await debugger.stack(stop.thread, count=_SEARCHED_FRAMES if is_users else 1)
    if not frames:
        return None
    index = user_frame(frames, root) if is_users and root is not None else 0
    frame, depth = frames[index], total - index
    exception = await debugger.exception(stop.thread) if stop.reason == "exception" else None
    variables = await locals_of(debugger, frame)
    texts = {variable.name: text_of(variable) for variable in variables}
    changed = changes(earlier, frame, texts, depth=depth)
    error = "" if exception is None else exception.message
    order = ranked(variables, line=source_line(frame), changed=frozenset(changed), error=error)
    return Snapshot(
        frame=frame,
        code=code_around(frame),
        values=within_budget(order, budget),
        texts=texts,
        changed=dict(list(changed.items())[:_MAX_CHANGES]),
        depth=depth,
        index=index,
        raised_in=frames[0] if index else None,
        watched={expression: await watched_text(debugger, expression, frame) for expression in watched},
        exception=exception,
    )


async def watched_text(debugger: Debugger, expression: str, frame: Frame) -> str:
    """The value of a watched expression in a frame, or why it has none."""
    try:
        found = await debugger.readable(await debugger.read(expression, frame.id))
        return text_of(replace(found, name=expression))
    except RequestFailed as error:
        return f"no value here: {error.message[:100]}"
    except NotReadable as refused:
        return f"not evaluated, because that could run code: {str(refused)[:100]}"


async def locals_of(debugger: Debugger, frame: Frame) -> list[Variable]:
    """The variables of a frame that its code can see: of all its blocks, where an inner name hides an outer one."""
    if (known := debugger.locals_reference(frame.id)) is not None:
        return await debugger.variables(known)
    scopes = await debugger.scopes(frame.id)
    chosen = [scope for scope in scopes if scope.kind == "locals"]
    if not chosen:
        chosen = [scope for scope in scopes if not scope.expensive][:1]
    found: dict[str, Variable] = {}
    for scope in chosen:
        for variable in await debugger.variables(scope.reference):
            found.setdefault(variable.name, variable)
    readable = [await debugger.readable(each, frame.id) for each in list(found.values())[:_MAX_READABLE]]
    return [*readable, *list(found.values())[_MAX_READABLE:]]


def user_frame(frames: Sequence[Frame], root: Path) -> int:
    """The index of the innermost frame of the user's code; without one, of the innermost that has a source file."""
    own = [index for index, frame in enumerate(frames) if frame.file and _is_own(Path(frame.file), root)]
    if own:
        return own[0]
    return next((index for index, frame in enumerate(frames) if frame.file and Path(frame.file).is_file()), 0)


def _is_own(file: Path, root: Path) -> bool:
    return file.is_relative_to(root) and not _INSTALLED & set(file.relative_to(root).parts)


def changes(earlier: Snapshot | None, frame: Frame, texts: Mapping[str, str], *, depth: int) -> dict[str, str]:
    """Values that are new or differ from the previous stop in the same function at the same depth: `old -> new`."""
    before = earlier and (earlier.frame.file, earlier.frame.name, earlier.depth)
    if earlier is None or before != (frame.file, frame.name, depth):
        return {}
    return {
        name: f"{earlier.texts[name]} -> {text}" if name in earlier.texts else text
        for name, text in texts.items()
        if earlier.texts.get(name) != text
    }


def source_line(frame: Frame) -> str:
    return linecache.getline(frame.file, frame.line) if frame.file else ""


def code_around(frame: Frame, *, lines: int = CONTEXT_LINES) -> str:
    """The numbered lines around a frame's line, which has an arrow."""
    if not frame.file:
        return ""
    linecache.checkcache(frame.file)
    found: Sequence[str] = linecache.getlines(frame.file)
    first, last = max(1, frame.line - lines), min(len(found), frame.line + lines)
    width = len(str(last))
    return "\n".join(
        f"{'>' if number == frame.line else ' '} {number:>{width}} {found[number - 1].rstrip()[:160]}"
        for number in range(first, last + 1)
    )


_MAX_STOPS = 50
_MAX_OBJECTS = 8
"""Objects of a stop whose attributes are read: each costs a request to the debugger."""
_MAX_ATTRIBUTES = 40
_MAX_DEPTH = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenStop:
    """One stop of a session: its location and its values, those of objects by path."""

    location: str
    values: Mapping[str, str]


async def add_stop(stops: dict[int, SeenStop], session: DebugSession, snapshot: Snapshot) -> None:
    """Add the present stop of a session by its number, and drop the oldest ones."""
    values = dict(snapshot.texts)
    if any(map(_is_object, values.values())):
        attributes = await _attributes(session.debugger, await locals_of(session.debugger, snapshot.frame))
        for name, parts in attributes.items():
            values.pop(name, None)
            values.update({f"{name}.{part}": text for part, text in parts.items()})
    stops[session.stop_count] = SeenStop(location=snapshot.location, values=values)
    while len(stops) > _MAX_STOPS:
        stops.pop(next(iter(stops)))


def differences(one: SeenStop, other: SeenStop) -> dict[str, str]:
    """The differences by path: `old -> new`, `new: …`, `gone: …`."""
    found: dict[str, str] = {}
    for name in {**one.values, **other.values}:
        before, after = one.values.get(name), other.values.get(name)
        if before is None:
            found[name] = f"new: {after}"
        elif after is None:
            found[name] = f"gone: {before}"
        elif before != after:
            try:
                found.update(_compare(name, ast.literal_eval(before), ast.literal_eval(after), _MAX_DEPTH))
            except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
                found[name] = f"{before} -> {after}"
    return found


def _compare(path: str, old: Any, new: Any, depth: int) -> Iterator[tuple[str, str]]:
    """The differing parts of two values, as deep as both have the same structure."""
    if not depth or not any(isinstance(old, kind) and isinstance(new, kind) for kind in (dict, (list, tuple))):
        if old != new:
            yield path, f"{old!r} -> {new!r}"
        return
    before, after = (_parts_of(old), _parts_of(new))
    for key in before | after:
        if key not in before:
            yield f"{path}[{key!r}]", f"new: {after[key]!r}"
        elif key not in after:
            yield f"{path}[{key!r}]", f"gone: {before[key]!r}"
        else:
            yield from _compare(f"{path}[{key!r}]", before[key], after[key], depth - 1)


def _parts_of(value: Any) -> dict[Any, Any]:
    return cast(dict[Any, Any], value) if isinstance(value, dict) else dict(enumerate(cast(list[Any], value)))


def _is_object(text: str) -> bool:
    return text.startswith("<")


async def _attributes(debugger: Debugger, variables: list[Variable]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    objects = [each for each in variables if each.reference and _is_object(text_of(each))]
    for variable in objects[:_MAX_OBJECTS]:
        for part in (await debugger.variables(variable.reference))[:_MAX_ATTRIBUTES]:
            if not part.name.startswith("__") and "variables" not in part.name:
                found.setdefault(variable.name, {})[part.name] = text_of(part)
    return found
