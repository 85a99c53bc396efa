"""Record of every write of a name, an attribute or a key, observed at the lines of the sources that can do it."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from trysquare.debug.recorder.expressions import condition, evaluate
from trysquare.debug.recorder.hooks import Watcher, is_resumed, name_of
from trysquare.debug.recorder.values import show

_MAX_LINES = 1_000_000
_MAX_WRITES = 40
_CHANGING = frozenset({
    "append", "extend", "insert", "remove", "pop", "clear", "update", "setdefault", "add", "discard", "sort", "reverse",
    "popitem", "popleft", "appendleft",
})  # fmt: skip
"""Methods of the common collections that change them."""


class WriteSite:
    """A statement that can write the value: its lines, and the expression that is written."""

    __slots__ = ("body", "first", "how", "key", "last", "text")

    def __init__(self, node: ast.stmt, written: ast.expr, how: str, *, key: ast.expr | None = None) -> None:
        is_loop = isinstance(node, (ast.For, ast.AsyncFor))
        is_block = is_loop or isinstance(node, (ast.With, ast.AsyncWith))
        self.first = node.lineno
        self.last = node.lineno if is_block else node.end_lineno or node.lineno
        self.body = (node.body[0].lineno, node.body[-1].end_lineno or 0) if is_loop else None
        self.how = how
        self.text = ast.unparse(written)
        self.key = ast.unparse(key) if key is not None else None


class WriteRecorder(Watcher):
    """Records the last writes of a value. Only functions that can write it are traced."""

    def __init__(self, roots: list[str], *, skip: str, options: dict[str, Any]) -> None:
        super().__init__(roots, skip=skip, lines=_MAX_LINES)
        self._wanted_value = ast.parse(str(options["value"]), mode="eval").body
        self._function = str(options.get("function") or "")
        self._when: str | None = options.get("when") or None
        self._files: dict[str, list[WriteSite]] = {}
        self._sites: dict[CodeType, list[WriteSite]] = {}
        self._at: dict[int, tuple[CodeType, int]] = {}
        self._writes: deque[dict[str, Any]] = deque(maxlen=_MAX_WRITES)
        self._count = 0
        self._places: dict[str, int] = {}
        self._objects: dict[int, int] = {}

    def called(self, frame: FrameType) -> None:
        if is_resumed(frame):
            return
        name = self._wanted_value.id if isinstance(self._wanted_value, ast.Name) else None
        code = frame.f_code
        if name is not None and name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            self._note(frame, code.co_firstlineno, "passed", name, show(frame.f_locals[name], name=name))

    def stepped(self, frame: FrameType) -> None:
        self.lines += 1
        self._settle(frame, frame.f_lineno)
        self._at[id(frame)] = (frame.f_code, frame.f_lineno)

    def left(self, frame: FrameType, value: Any, *, raised: bool) -> None:
        if not raised:
            self._settle(frame, None)
        self._at.pop(id(frame), None)

    def to_json(self) -> dict[str, Any]:
        return {"writes": list(self._writes), "count": self._count, "places": self._places}

    def _settle(self, frame: FrameType, now: int | None) -> None:
        """Record a write if the line that has run is one."""
        code, line = self._at.get(id(frame), (None, 0))
        if code is not frame.f_code:
            return
        for site in self._sites[frame.f_code]:
            if site.first <= line <= site.last and _has_left(site, now) and self._is_wanted_write(site, frame):
                value = _evaluated(site.text, frame, name=site.text)
                if self._when is None or condition(self._when, frame)[0]:
                    self._note(frame, site.first, site.how, site.text, value)

    def _note(self, frame: FrameType, line: int, how: str, target: str, value: str) -> None:
        code = frame.f_code
        above = frame.f_back
        self._count += 1
        place = f"{code.co_filename}:{line}"
        self._places[place] = self._places.get(place, 0) + 1
        self._writes.append({
            "number": self._count, "file": code.co_filename, "line": line, "function": name_of(code), "how": how,
            "target": target, "value": value, "object": self._object_number(target, frame),
            "caller": "" if above is None else f"{above.f_code.co_filename}:{above.f_lineno}",
        })  # fmt: skip

    def _object_number(self, target: str, frame: FrameType) -> int | None:
        """Number of the object that was written to, in the order in which objects were first seen."""
        owner = target.partition(".")[0].partition("[")[0]
        if owner == target or owner not in frame.f_locals:
            return None
        return self._objects.setdefault(id(frame.f_locals[owner]), len(self._objects) + 1)

    def _is_wanted(self, code: CodeType) -> bool:
        if not self.is_own(code):
            return False
        if self._function and not f".{name_of(code)}".endswith(f".{self._function}"):
            return False
        lines = {line for _, _, line in code.co_lines() if line is not None}
        self._sites[code] = [site for site in self._sites_of(code.co_filename) if site.first in lines]
        return bool(self._sites[code]) or isinstance(self._wanted_value, ast.Name)

    def wants_line(self, code: CodeType, line: int) -> bool:
        return bool(self._sites.get(code))

    def _sites_of(self, file: str) -> list[WriteSite]:
        if file not in self._files:
            try:
                with open(file, encoding="utf-8") as source:
                    tree = ast.parse(source.read())
            except (OSError, SyntaxError, ValueError):
                tree = ast.Module(body=[], type_ignores=[])
            self._files[file] = list(_sites(tree, self._wanted_value))
        return self._files[file]

    def _is_wanted_write(self, site: WriteSite, frame: FrameType) -> bool:
        """For a key, whether it was this one; for `Class.attribute`, whether the owner is of that class."""
        if site.key is not None and isinstance(self._wanted_value, ast.Subscript):
            wanted = _evaluated(ast.unparse(self._wanted_value.slice), frame)
            return _evaluated(site.key, frame) == wanted
        value = self._wanted_value
        if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name) and value.value.id[:1].isupper():
            owner = frame.f_locals.get(site.text.partition(".")[0])
            return owner is None or value.value.id in {base.__name__ for base in type(owner).__mro__}
        return True


def _has_left(site: WriteSite, now: int | None) -> bool:
    """Whether the statement has ended; a loop has written its variable only if its body comes next."""
    if site.body is not None:
        return now is not None and site.body[0] <= now <= site.body[1]
    return now is None or not site.first < now <= site.last


def _sites(tree: ast.AST, wanted: ast.expr) -> Iterator[WriteSite]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        for target in _targets(node):
            yield from _written(node, target, wanted, "deleted" if isinstance(node, ast.Delete) else "assigned")
        yield from _changed(node, wanted)


def _targets(node: ast.stmt) -> Iterator[ast.expr]:
    found: list[ast.expr] = []
    if isinstance(node, (ast.Assign, ast.Delete)):
        found = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        found = [node.target]
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        found = [item.optional_vars for item in node.items if item.optional_vars is not None]
    for each in found:
        yield from (part for part in ast.walk(each) if isinstance(getattr(part, "ctx", None), (ast.Store, ast.Del)))  # type: ignore[misc]


def _written(node: ast.stmt, target: ast.expr, wanted: ast.expr, how: str) -> Iterator[WriteSite]:
    if isinstance(wanted, ast.Subscript):
        if isinstance(target, ast.Subscript):
            yield WriteSite(node, target, how, key=target.slice)
        if ast.unparse(target) == ast.unparse(wanted.value):
            yield WriteSite(node, wanted, how)
    elif _is_same(target, wanted):
        yield WriteSite(node, target, how)


def _changed(node: ast.stmt, wanted: ast.expr) -> Iterator[WriteSite]:
    """`items.append(…)` and the like, and `items[0] = …` if the whole of `items` is wanted."""
    if not isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign, ast.Return)):
        return
    is_key = isinstance(wanted, ast.Subscript)
    for part in ast.walk(node):
        changed: ast.expr | None = None
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _CHANGING:
            changed = part.func.value
        # If a key is wanted, only its own writes are reported, and none of the whole.
        elif isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store) and not is_key:
            changed = part.value
        if changed is not None and _is_same(changed, wanted):
            yield WriteSite(node, changed, "changed")


def _is_same(found: ast.expr, wanted: ast.expr) -> bool:
    if isinstance(wanted, ast.Attribute):
        return isinstance(found, ast.Attribute) and found.attr == wanted.attr
    inner = wanted.value if isinstance(wanted, ast.Subscript) else wanted
    return ast.unparse(found) == ast.unparse(inner)


def _evaluated(expression: str, frame: FrameType, *, name: str = "") -> str:
    value, error = evaluate(expression, frame)
    return f"<{error.partition(':')[0]}>" if error else show(value, name=name)
