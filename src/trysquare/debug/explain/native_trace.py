"""Trace of a program by stepping: C-like source lines, recorded frames, and the value to blame with its origins."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from trysquare.debug.debugger import Debugger, Frame, Stopped
from trysquare.debug.explain.provenance import Origin
from trysquare.debug.explain.suspects import Suspect
from trysquare.debug.sessions.session import DebugSession, Outcome
from trysquare.debug.snapshot import text_of
from trysquare.debug.sources import Sources

Evaluate: TypeAlias = Callable[[str], Awaitable[str | None]]
_MAX_LINES = 600
_MAX_SECONDS = 15.0
_MAX_NAMES = 40
_MAX_FRAMES = 200
_MAX_DEPTH = 6
_MODULE_NAMES = ("exports", "require", "module", "__filename", "__dirname", "arguments")
_READING = re.compile(r"of (?:undefined|null) \((?:reading|setting) '([^']+)'\)")
_NOT = re.compile(r"^([\w$.\[\]]+) is not (?:a function|iterable|a constructor|defined)")
_ZERO = re.compile(r"0x0+|<?null(?:ptr)?>?|NULL|None|undefined|NaN|0")
_FROM_FIELD = re.compile(r"=\s*[\w$.>-]*(?:\.|->)(\w+)\s*;?\s*$")
_STRINGS = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`")
_COMMENT = re.compile(r"//.*$|/\*.*?\*/")
_PATH = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|\?\.)[A-Za-z_$][\w$]*|\[[\w$.\"'+\- ]+\])*")
_CALL = re.compile(r"([A-Za-z_$][\w$]*)\s*\(")
_BLOCK = re.compile(r"^(?:\}\s*)?(?:else\s+)?(?:if|for|while|switch)\b")
_WORDS = frozenset({
    "if", "for", "while", "return", "const", "let", "var", "int", "char", "new", "throw", "else", "struct", "void",
    "double", "float", "long", "sizeof", "typeof", "function", "await", "async", "of", "in", "switch", "case", "assert",
    "require", "console", "true", "false", "null", "NULL", "undefined", "printf", "size_t", "unsigned", "fn", "mut",
    "match", "assert_eq", "println", "equal", "strictEqual", "deepEqual", "ok", "deepStrictEqual",
})  # fmt: skip
"""Keywords, types and assertions, which are not values."""


def bare(line: str) -> str:
    """A line without comments and with empty strings."""
    return _COMMENT.sub("", _STRINGS.sub('""', line))


def names_in(line: str) -> list[str]:
    """Names and the paths that begin with them, each once, in order; a path before its own name."""
    text = bare(line)
    found: list[str] = []
    for match in _PATH.finditer(text):
        path = match.group(0)
        root = re.split(r"\.|->|\[|\?", path)[0]
        if root in _WORDS or text[match.end() :].lstrip().startswith("("):
            path = path.rpartition(".")[0]
        if root not in _WORDS and path:
            found += [path, root] if path != root else [root]
    return list(dict.fromkeys(found))


def calls_in(line: str) -> list[str]:
    """The functions that a line calls, by the last part of their names."""
    return [name for name in _CALL.findall(bare(line)) if name not in _WORDS]


def divisors_in(line: str) -> list[str]:
    return [found for found in re.findall(r"[/%]\s*\(?\s*([A-Za-z_$][\w$.]*)", bare(line)) if found not in _WORDS]


def pointers_in(line: str) -> list[str]:
    """The pointers that a line dereferences: `p->x`, `*p`, `p[i]`."""
    text = bare(line)
    through = re.findall(r"([A-Za-z_]\w*(?:(?:->|\.)\w+)*)\s*(?:->|\[)", text)
    starred = re.findall(r"(?<![\w\)])\*\s*([A-Za-z_]\w*)", text)
    return list(dict.fromkeys([*through, *starred]))


def blocks_around(lines: Sequence[str], line: int) -> tuple[int, ...]:
    """The lines of the loops and conditions around a line, innermost first, by indentation."""
    if not 0 < line <= len(lines):
        return ()
    found: list[int] = []
    indent = _indent(lines[line - 1])
    for number in range(line - 1, 0, -1):
        text = lines[number - 1]
        if not text.strip() or _indent(text) >= indent:
            continue
        indent = _indent(text)
        if _BLOCK.match(text.strip()):
            found.append(number)
        elif not text.strip().startswith("}"):
            break
    return tuple(found)


def writes(line: str, name: str) -> bool:
    """Whether a line writes a name, or a part of it."""
    plain = re.escape(name)
    part = r"(?:\s*\[[^\]]*\]|(?:\.|->)\w+)*"
    assigned = rf"(?:^|[^\w$.>]){plain}{part}\s*(?:[-+*/%|&^]|<<|>>)?=(?!=)"
    return re.search(rf"{assigned}|{plain}{part}\s*(?:\+\+|--)|(?:\+\+|--)\s*{plain}\b", bare(line)) is not None


def writes_field(line: str, field: str) -> bool:
    """Whether a line writes a field of any object."""
    return re.search(rf"(?:\.|->){re.escape(field)}\s*=(?!=)", bare(line)) is not None


def blocks_of_writes(lines: Sequence[str], line: int, name: str) -> tuple[int, ...]:
    """The blocks around later writes of a name in the same function, which may not have run."""
    found: list[int] = []
    for number in range(line + 1, len(lines) + 1 if name else 0):
        text = lines[number - 1]
        if text.strip() and not _indent(text):
            break
        if writes(text, name):
            found.extend(blocks_around(lines, number)[:1])
    return tuple(found)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@dataclass(kw_only=True, slots=True)
class FrameTrace:
    """The lines that ran in one frame with what each changed, and the calls that returned to it."""

    file: str
    function: str
    arguments: dict[str, str] = field(default_factory=dict[str, str])
    steps: list[tuple[int, dict[str, str]]] = field(default_factory=list[tuple[int, dict[str, str]]])
    callees: list[tuple[int, FrameTrace]] = field(default_factory=list["tuple[int, FrameTrace]"])
    """The line of each call, and its frame."""
    values: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def last_line(self) -> int:
        return self.steps[-1][0] if self.steps else 0

    def settle(self, values: dict[str, str]) -> None:
        """Record what the last line has changed."""
        if self.steps:
            changes = {name: text for name, text in values.items() if self.values.get(name) != text}
            self.steps[-1][1].update(changes)
        self.values = values

    def last_callee(self, line: int, names: Sequence[str], *, but: str = "") -> FrameTrace | None:
        """The last call by one of these names that returned to a line."""
        found = [each for at, each in self.callees if at == line and re.split(r"\.|::", each.function)[-1] in names]
        return found[-1] if found and found[-1].function != but else None


@dataclass(kw_only=True, slots=True)
class StepRecord:
    """The frames that existed at the end, the outermost first."""

    frames: list[FrameTrace] = field(default_factory=list[FrameTrace])
    trail: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    """Every line that ran, in order."""
    full: bool = False
    outcome: Outcome = None

    async def record_stop(self, session: DebugSession, stop: Stopped, root: Path) -> bool:
        """Record the current line and values; False if the line is not the user's own code."""
        frames, _ = await session.debugger.stack(stop.thread, count=_MAX_FRAMES)
        own = [frame for frame in reversed(frames) if is_own(frame, root)]
        if not frames or not own or not is_own(frames[0], root):
            return False
        values = await values_of(session.debugger, frames[0])
        self._follow(own, values)
        current = self.frames[-1]
        current.settle(values)
        if stop.reason != "exception":
            current.steps.append((frames[0].line, {}))
            self.trail.append((current.file, frames[0].line))
        return True

    def _follow(self, own: list[Frame], values: dict[str, str]) -> None:
        """Update the frames from the stack: those that are gone have returned, new ones were called."""
        while len(self.frames) > len(own) or (self.frames and not _is_same(self.frames[-1], own[len(self.frames) - 1])):
            gone = self.frames.pop()
            if self.frames:
                self.frames[-1].callees.append((self.frames[-1].last_line, gone))
        for frame in own[len(self.frames) :]:
            self.frames.append(FrameTrace(file=frame.file or "", function=_plain(frame.name)))
        if not self.frames[-1].steps:
            self.frames[-1].arguments = self.frames[-1].values = dict(values)


async def step_through(session: DebugSession, stop: Stopped, root: Path, *, timeout: float) -> StepRecord:
    """Step from a stop to the program's failure or end; run on from where a limit is reached."""
    record = StepRecord()
    until = time.monotonic() + min(_MAX_SECONDS, timeout)
    outcome: Outcome = stop
    while isinstance(outcome, Stopped) and outcome.reason != "exception":
        kind = "into" if await record.record_stop(session, outcome, root) else "out"
        if len(record.trail) >= _MAX_LINES or time.monotonic() > until:
            record.full = True
            outcome = await session.run(session.debugger.resume, timeout=timeout)
            continue
        outcome = await session.run(lambda thread, kind=kind: session.debugger.step(kind, thread), timeout=timeout)
    record.outcome = outcome
    return record


def is_own(frame: Frame, root: Path) -> bool:
    """Whether a frame is the user's: its file is in the workspace."""
    file = frame.file or ""
    return file.startswith(f"{root}/") and "/node_modules/" not in file


async def values_of(debugger: Debugger, frame: Frame) -> dict[str, str]:
    """The local values of a frame, those of inner blocks first."""
    found: dict[str, str] = {}
    for scope in await debugger.scopes(frame.id):
        if scope.kind == "locals":
            for variable in (await debugger.variables(scope.reference))[:_MAX_NAMES]:
                found.setdefault(variable.name, text_of(variable))
    return {name: text for name, text in found.items() if name not in _MODULE_NAMES}


def _is_same(trace: FrameTrace, frame: Frame) -> bool:
    return trace.file == frame.file and trace.function == _plain(frame.name)


def _plain(name: str) -> str:
    """A function's name without its parameters."""
    return name.partition("(")[0].strip() or name


@dataclass(frozen=True, kw_only=True, slots=True)
class Failing:
    line: int
    code: str
    kind: str
    message: str
    values: dict[str, str]


async def find_suspect(
    failing: Failing, record: StepRecord, evaluate: Evaluate, sources: Sources
) -> tuple[Suspect | None, list[Origin]]:
    """The value to blame, and its origins, the nearest first."""
    search = _OriginSearch(record, sources)
    callee = record.frames[-1].last_callee(failing.line, calls_in(failing.code)) if record.frames else None
    is_assertion = failing.kind.startswith(("AssertionError", "SIGABRT")) or "assert" in failing.code
    if callee is None or not is_assertion:
        for expression in _candidates(failing):
            value = failing.values.get(expression) or await evaluate(expression)
            if value is not None:
                suspect = Suspect(expression=expression, value=value[:120])
                return suspect, search.of(expression, len(record.frames) - 1)
    if callee is None:
        return None, []
    return Suspect(expression=f"what {callee.function} returned", value="wrong"), search.of_return(callee)


def _candidates(failing: Failing) -> list[str]:
    """Expressions of the failing line, the likeliest first."""
    found: list[str] = []
    if (missing := _READING.search(failing.message)) is not None:
        name = re.escape(missing.group(1))
        before = re.findall(rf"([\w$][\w$.\[\]]*?)(?:\?\.|\.){name}\b|([\w$][\w$.]*)\[[^\]]*\]", failing.code)
        found += [one or other for one, other in before]
    if (named := _NOT.search(failing.message)) is not None:
        found += [named.group(1), named.group(1).rpartition(".")[0]]
    if failing.kind.startswith("SIGFPE"):
        found += divisors_in(failing.code)
    names = names_in(failing.code)
    if failing.kind.startswith(("SIGSEGV", "SIGBUS", "EXC_")):
        pointers = pointers_in(failing.code)
        found += [name for name in pointers if _ZERO.fullmatch(failing.values.get(name, ""))]
        inside = [name for each in re.findall(r"\[([^\]]+)\]", failing.code) for name in names_in(each)]
        found += [*(name for name in inside if name in failing.values), *pointers]
    empty = [name for name in names if _ZERO.fullmatch(failing.values.get(name, ""))]
    return [each for each in dict.fromkeys([*found, *empty, *names]) if each]


class _OriginSearch:
    def __init__(self, record: StepRecord, sources: Sources) -> None:
        self._record = record
        self._sources = sources

    def of(self, expression: str, level: int, depth: int = _MAX_DEPTH) -> list[Origin]:
        """The origins of a value of a frame that existed at the end."""
        frames = self._record.frames
        if level < 0 or level >= len(frames) or depth <= 0:
            return []
        frame = frames[level]
        found = self._in_frame(expression, frame, depth)
        if found or not level:
            return found
        caller, value = frames[level - 1], frame.values.get(expression) or frame.arguments.get(expression, "?")
        line = caller.last_line
        code = self._sources.line(caller.file, line)
        passed = self._origin(caller.file, line, f"passed {expression} = {value}", expression)
        callee = caller.last_callee(line, calls_in(code), but=frame.function)
        if callee is not None:
            return [passed, *self.of_return(callee, depth - 1)]
        for name in names_in(code):
            if caller.values.get(name) == value:
                return [passed, *self.of(name, level - 1, depth - 1)]
        return [passed]

    def of_return(self, frame: FrameTrace, depth: int = _MAX_DEPTH) -> list[Origin]:
        # Debuggers stop once more at the closing brace, after the line that says what is returned.
        lines = (line for line, _ in reversed(frame.steps))
        line = next(
            (each for each in lines if self._sources.line(frame.file, each) not in ("}", "};")), frame.last_line
        )
        code = self._sources.line(frame.file, line)
        arguments = [f"{name}={text}" for name, text in frame.arguments.items() if name != "this"]
        here = self._origin(frame.file, line, f"{frame.function}({', '.join(arguments[:5])}) ended here")
        callee = frame.last_callee(line, calls_in(code))
        if callee is not None and depth > 0:
            return [here, *self.of_return(callee, depth - 1)]
        for name in names_in(code):
            if found := self._in_frame(name, frame, depth - 1):
                return [here, *found]
        return [here]

    def _in_frame(self, expression: str, frame: FrameTrace, depth: int) -> list[Origin]:
        root = re.split(r"\.|->|\[", expression)[0]
        for line, changes in reversed(frame.steps):
            code = self._sources.line(frame.file, line)
            if root not in changes and not writes(code, root):
                continue
            value = changes.get(root) or frame.values.get(root, "?")
            here = self._origin(frame.file, line, f"{root} = {value}", root)
            callee = frame.last_callee(line, calls_in(code))
            if callee is not None and depth > 0:
                return [here, *self.of_return(callee, depth - 1)]
            return [here, *self._from_field(code)]
        return []

    def _from_field(self, code: str) -> list[Origin]:
        """`a = b->field`: where that field of any object was last written."""
        found = _FROM_FIELD.search(bare(code).strip())
        if found is None:
            return []
        name = found.group(1)
        for file, line in reversed(self._record.trail):
            if writes_field(self._sources.line(file, line), name):
                return [self._origin(file, line, f"the last write of a `{name}`")]
        return []

    def _origin(self, file: str, line: int, what: str, name: str = "") -> Origin:
        return Origin(file=file, line=line, code=self._sources.line(file, line), what=what, name=name)
