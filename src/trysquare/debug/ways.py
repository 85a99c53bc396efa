"""Ways: the value to blame for a failing line of a language with braces, and its way back through what was stepped."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from trysquare.debug.origins import Origin
from trysquare.debug.reading import bare, calls_in, divisors_in, names_in, pointers_in, writes, writes_field
from trysquare.debug.sources import Sources
from trysquare.debug.stepped import Life, StepRecord
from trysquare.debug.suspicion import Suspect

Evaluate: TypeAlias = Callable[[str], Awaitable[str | None]]
_READING = re.compile(r"of (?:undefined|null) \((?:reading|setting) '([^']+)'\)")
_NOT = re.compile(r"^([\w$.\[\]]+) is not (?:a function|iterable|a constructor|defined)")
_ZERO = re.compile(r"0x0+|<?null(?:ptr)?>?|NULL|None|undefined|NaN|0")
_DEEPEST = 6
_FROM_FIELD = re.compile(r"=\s*[\w$.>-]*(?:\.|->)(\w+)\s*;?\s*$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Failing:
    """The line that failed, with what was known there."""

    file: str
    line: int
    code: str
    kind: str
    message: str
    values: dict[str, str]
    language: str


async def blame(
    failing: Failing, record: StepRecord, evaluate: Evaluate, sources: Sources
) -> tuple[Suspect | None, list[Origin]]:
    """The value that is to blame, and the steps back to where it was made, the nearest first."""
    way = _Way(record, sources)
    if _is_assertion(failing):
        callee = way.called_from(failing.line, calls_in(failing.code))
        if callee is not None:
            return Suspect(expression=f"what {callee.function} returned", value="wrong"), way.of_return(callee)
    for expression in _candidates(failing):
        value = failing.values.get(expression) or await evaluate(expression)
        if value is not None:
            return Suspect(expression=expression, value=value[:120]), way.of(expression, len(record.lives) - 1)
    callee = way.called_from(failing.line, calls_in(failing.code))
    if callee is not None:
        return Suspect(expression=f"what {callee.function} returned", value="wrong"), way.of_return(callee)
    return None, []


def _is_assertion(failing: Failing) -> bool:
    return failing.kind.startswith(("AssertionError", "SIGABRT")) or "assert" in failing.code


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
        through = pointers_in(failing.code)
        found += [name for name in through if _ZERO.fullmatch(failing.values.get(name, ""))]
        inside = [name for each in re.findall(r"\[([^\]]+)\]", failing.code) for name in names_in(each)]
        found += [*(name for name in inside if name in failing.values), *through]
    empty = [name for name in names if _ZERO.fullmatch(failing.values.get(name, ""))]
    return [each for each in dict.fromkeys([*found, *empty, *names]) if each]


class _Way:
    """The search back through the lives of the frames that were there at the end."""

    def __init__(self, record: StepRecord, sources: Sources) -> None:
        self._lives = record.lives
        self._trail = record.trail
        self._sources = sources

    def called_from(self, line: int, names: Sequence[str]) -> Life | None:
        """The last call by one of these names that came back to a line of the failing frame."""
        if not self._lives:
            return None
        found = [life for at, life in self._lives[-1].callees if at == line and _last_part(life.function) in names]
        return found[-1] if found else None

    def of(self, expression: str, level: int, depth: int = _DEEPEST) -> list[Origin]:
        """The steps back of a value of a frame that was there at the end."""
        if level < 0 or level >= len(self._lives) or depth <= 0:
            return []
        life = self._lives[level]
        found = self._in_life(expression, life, depth)
        if found or not level:
            return found
        caller = self._lives[level - 1]
        line = caller.last_line
        passed = self._origin(caller.file, line, f"passed {expression} = {_shown(life, expression)}", expression)
        value = _shown(life, expression)
        callee = _last_callee(caller, line, calls_in(self._sources.line(caller.file, line)), but=life.function)
        if callee is not None:
            return [passed, *self.of_return(callee, depth - 1)]
        for name in names_in(self._sources.line(caller.file, line)):
            if caller.values.get(name) == value:
                return [passed, *self.of(name, level - 1, depth - 1)]
        return [passed]

    def of_return(self, life: Life, depth: int = _DEEPEST) -> list[Origin]:
        """The steps back of what a call returned."""
        line = self._return_line(life)
        code = self._sources.line(life.file, line)
        given = ", ".join(f"{name}={text}" for name, text in list(_given(life).items())[:5])
        here = self._origin(life.file, line, f"{life.function}({given}) ended here")
        callee = _last_callee(life, line, calls_in(code))
        if callee is not None and depth > 0:
            return [here, *self.of_return(callee, depth - 1)]
        for name in names_in(code):
            found = self._in_life(name, life, depth - 1)
            if found:
                return [here, *found]
        return [here]

    def _return_line(self, life: Life) -> int:
        """The last line that says what is returned; debuggers stop once more at the closing brace."""
        lines = [line for line, _ in life.steps]
        for line in reversed(lines):
            if self._sources.line(life.file, line) not in ("}", "};"):
                return line
        return life.last_line

    def _in_life(self, expression: str, life: Life, depth: int) -> list[Origin]:
        root = re.split(r"\.|->|\[", expression)[0]
        for line, changes in reversed(life.steps):
            code = self._sources.line(life.file, line)
            if root not in changes and not writes(code, root):
                continue
            value = changes.get(root) or life.values.get(root, "?")
            here = self._origin(life.file, line, f"{root} = {value}", root)
            callee = _last_callee(life, line, calls_in(code))
            if callee is not None and depth > 0:
                return [here, *self.of_return(callee, depth - 1)]
            return [here, *self._from_field(code)]
        return []

    def _from_field(self, code: str) -> list[Origin]:
        """`a = b->field`: where that field was last written, whatever it was a field of."""
        found = _FROM_FIELD.search(bare(code).strip())
        if found is None:
            return []
        field = found.group(1)
        for file, line in reversed(self._trail):
            if writes_field(self._sources.line(file, line), field):
                return [self._origin(file, line, f"the last write of a `{field}`")]
        return []

    def _origin(self, file: str, line: int, what: str, name: str = "") -> Origin:
        return Origin(file=file, line=line, code=self._sources.line(file, line), what=what, name=name)


def _last_callee(life: Life, line: int, names: Sequence[str], *, but: str = "") -> Life | None:
    found = [each for at, each in life.callees if at == line and _last_part(each.function) in names]
    return found[-1] if found and found[-1].function != but else None


def _given(life: Life) -> dict[str, str]:
    return {name: text for name, text in life.arguments.items() if name != "this"}


def _shown(life: Life, expression: str) -> str:
    return life.values.get(expression) or life.arguments.get(expression, "?")


def _last_part(name: str) -> str:
    return re.split(r"\.|::", name)[-1]
