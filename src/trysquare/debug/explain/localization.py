"""Localization: the lines that probably make a test fail, found by running it beside passing tests."""

from __future__ import annotations

import ast
import asyncio
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from trysquare.core.errors import ToolError
from trysquare.core.json import JsonObject
from trysquare.core.text import truncate
from trysquare.debug.explain.recording import record_run
from trysquare.debug.recorder.forks import BUSY
from trysquare.debug.sessions.launch import Target
from trysquare.debug.sources import relative
from trysquare.processes.supervisor import ProcessSupervisor

BUDGET = 20.0
"""Seconds for the passing tests and the changes that are tried."""
_GIT_SECONDS = 5.0
_CHANGED_LATELY = 0.25
_TRACED = 0.3
"""What a hint adds to the suspicion of a line."""
_HUNK = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")
_MAX_FILES = 12
_MAX_SEARCHED = 400
_LEAST = 0.05
"""Share of the highest suspicion below which nothing is named."""
_CHOOSING = ("-k", "-m", "--deselect", "--ignore", "-n", "--maxfail")
"""Options of pytest with a value that choose tests."""
_FLAGS = ("--lf", "--last-failed", "--ff", "--failed-first", "-x", "--exitfirst", "--sw", "--stepwise", "--nf")


@dataclass(frozen=True, kw_only=True, slots=True)
class SuspectLine:
    """A line that may be wrong, and the evidence."""

    file: str
    line: int
    last_line: int
    """The last line of its statement."""
    function: str
    code: str
    score: float
    evidence: JsonObject

    @property
    def location(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def proof(self) -> JsonObject | None:
        return cast(JsonObject | None, self.evidence.get("proof"))

    def why(self, failing: int, passing: int) -> str:
        """The reasons for its rank in one sentence, each of them counted or tried."""
        reasons: list[str] = []
        if (proof := self.proof) is not None:
            checked, breaks = int(proof["checked"]), int(proof["breaks"])
            others = f"{checked - breaks} of {checked} passing tests that reach it" if checked else ""
            kept = f", and {others} still pass" if others else ""
            reasons.append(f"proof: with this change the test passes{kept}: {proof['what']}")
        if self.evidence["is_counted"]:
            what = "run by" if self.evidence["is_run"] else "what it defines is used by"
            counts = f"{self.evidence['failing']} of {failing} failing and {self.evidence['passing']} of {passing}"
            reasons.append(f"{what} {counts} passing tests")
        branch = cast(JsonObject | None, self.evidence.get("branch"))
        if branch is not None and float(branch["ochiai"]) > float(self.evidence.get("ochiai") or 0):
            counts = f"{branch['failing']} of {failing} failing and {branch['passing']} of {passing}"
            reasons.append(f"{counts} passing tests {branch['what']}")
        if self.evidence.get("on_stack"):
            reasons.append("in the traceback")
        elif self.evidence.get("why"):
            reasons.append(str(self.evidence["why"]))
        if self.evidence.get("changed"):
            reasons.append(f"{self.evidence['changed']} (a hint of git)")
        return "; ".join(reasons)

    def values(self) -> str:
        """What it read and made in the failing test, and in a passing one."""
        reported = cast(JsonObject | None, self.evidence.get("values"))
        if reported is None:
            return ""
        text = f"ran {reported['count']} times, last with {_values_text(reported)}" if _values_text(reported) else ""
        other = cast(JsonObject | None, self.evidence.get("passing_values"))
        if text and other and _values_text(other):
            text += f"; in {self.evidence['passing_test']}: {_values_text(other)}"
        return text


@dataclass(frozen=True, kw_only=True, slots=True)
class Localization:
    """What was found of one failing test."""

    found: JsonObject

    @property
    def is_located(self) -> bool:
        return bool(self.suspects)

    @property
    def counts(self) -> tuple[int, int]:
        """How many failing and passing tests were run."""
        return len(cast(list[str], self.found["failing"])), int(self.found["passing"])

    @property
    def note(self) -> str:
        """Why there are no suspects, if that says something about the test."""
        if self.found.get("again") == "passed":
            return "Run again by itself, it passed: it is flaky, or depends on tests that ran before it."
        if reason := self.found.get("again") or self.found.get("reason"):
            return f"Suspects: not known, as the test could not be run beside others: {reason}."
        return ""

    @property
    def suspects(self) -> tuple[SuspectLine, ...]:
        """The lines, the most suspect first."""
        found = cast(list[JsonObject], self.found.get("suspects") or [])
        if not found or float(found[0]["score"]) <= 0:
            return ()
        return tuple(
            SuspectLine(
                file=str(each["file"]), line=int(each["line"]), last_line=int(each["last_line"]),
                function=str(each["function"]), code=str(each["code"]), score=float(each["score"]), evidence=each,
            )
            for each in found
            if float(each["score"]) >= _LEAST * float(found[0]["score"])
        )  # fmt: skip

    @property
    def confidence(self) -> str:
        """How sure the first place is, by what was tried and counted."""
        first, *others = self.suspects
        proof = first.proof
        if proof is not None and not int(proof["breaks"]):
            rivals = sum(each.proof is not None and not int(each.proof["breaks"]) for each in others)
            if rivals:
                return "fair: changes of other lines make it pass too"
            return "high" if int(proof["checked"]) else "fair: no passing test reaches the changed line"
        if not others or first.score - others[0].score > 0.15:
            return "fair"
        return "low: the first lines differ little"

    def to_lines(self, root: str, *, count: int) -> list[str]:
        """The suspects as text, one or two lines each."""
        if not self.is_located:
            return []
        failing, passing = self.counts
        trials = int(self.found["trials"])
        reported = f"{failing} failing and {passing} passing tests were run"
        reported += f", {trials} changes tried" if trials else ""
        left = int(self.found["not_run"])
        reported += f"; {left} more tests were not run" if left else ""
        lines = [f"Suspects, most likely first ({reported}). Confidence: {self.confidence}."]
        if self.found.get("instead_of"):
            other = self.found["name"]
            lines.append(
                f"The test starts a process and runs no code here itself. These are of {other}, which fails too:"
            )
        for number, each in enumerate(self.suspects[:count], start=1):
            lines.append(f"{number}. {relative(each.location, root)} `{each.code}` in {each.function}")
            lines.append(f"   {each.why(failing, passing)}")
            if values := each.values():
                lines.append(f"   {values}")
        return lines

    def with_hints(self, traced: Sequence[str], changed: Mapping[str, tuple[str, frozenset[int]]]) -> Localization:
        """Raise the suspicion of lines that the wrong value was traced to, and of those that were changed lately."""
        suspects = [dict(each) for each in cast(list[JsonObject], self.found.get("suspects") or [])]
        for each in suspects:
            what, lines = changed.get(str(each["file"]), ("", frozenset[int]()))
            place = f"{each['file']}:{each['line']}"
            if int(each["line"]) in lines:
                each["changed"] = what
                each["score"] = round(float(each["score"]) + _CHANGED_LATELY, 3)
            if place in traced:
                each["why"] = "the wrong value was traced to it"
                each["score"] = round(float(each["score"]) + _TRACED / (1 + traced.index(place)), 3)
        suspects.sort(key=lambda each: -float(each["score"]))
        return replace(self, found={**self.found, "suspects": suspects})

    def to_json(self) -> JsonObject:
        return self.found


async def localize(
    target: Target, test: Sequence[str], root: Path, supervisor: ProcessSupervisor, *, budget: float = BUDGET,
    changes: bool = True, regression: bool = False, env: Mapping[str, str] | None = None,
    is_processor_time: bool = False,
) -> Localization:  # fmt: skip
    """Find the suspects of a failing test, given as its file and its name in there.

    The budget is of time that passes, or of processor time, with which a busy machine finds what a quiet one does.
    """
    file = Path(test[0])
    if target.kind == "pytest":
        words = [*_options(target.words, root), str(file), *_related(file)]
    else:
        words = [test[1].rpartition(".")[0].rpartition(".")[0]] if _names_tests(target.words) else [*target.words]
    asked = replace(target, words=tuple(words))
    watch: JsonObject = {
        "kind": f"locate {target.kind}", "failing": [list(test)], "budget": budget, "changes": changes,
        "regression": regression, "processor_time": is_processor_time,
    }  # fmt: skip
    timeout = (budget + 40) * (BUSY if is_processor_time else 1)
    try:
        run = await record_run(asked, root, supervisor, watch, timeout=timeout, env=env)
    except ToolError as error:
        return Localization(found={"located": False, "reason": str(error)})
    located = cast(JsonObject | None, run.found.get("located"))
    if located is None:
        return Localization(found={"located": False, "reason": run.outcome, "output": run.output[-2000:]})
    return Localization(found=located)


async def changed_lines(root: Path, files: Sequence[str] = ("*.py",)) -> dict[str, tuple[str, frozenset[int]]]:
    """By file: the lines that differ from the last commit, or if none does, those that the last commit changed."""
    top = (await _git(root, "rev-parse", "--show-toplevel")).strip()
    if not top:
        return {}
    for what, revisions in (
        ("changed since the last commit", ["HEAD"]),
        ("changed by the last commit", ["HEAD~1", "HEAD"]),
    ):
        found: dict[str, set[int]] = {}
        file = ""
        for line in (
            await _git(root, "diff", "-U0", "--no-color", "--no-ext-diff", *revisions, "--", *files)
        ).splitlines():
            if line.startswith("+++ "):
                file = str(Path(top) / line[6:])
            elif (head := _HUNK.match(line)) is not None:
                start, count = int(head[1]), int(head[2] or 1)
                found.setdefault(file, set()).update(range(start, start + count))
        if found:
            return {file: (what, frozenset(lines)) for file, lines in found.items()}
    return {}


async def _git(root: Path, *words: str) -> str:
    program = shutil.which("git")
    if program is None:
        return ""
    process = await asyncio.create_subprocess_exec(
        program, *words, cwd=root, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_GIT_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return ""
    return output.decode(errors="replace") if process.returncode == 0 else ""


def _values_text(reported: JsonObject) -> str:
    read = cast(dict[str, str], reported["read"])
    made = {name: text for name, text in cast(dict[str, str], reported["made"]).items() if read.get(name) != text}
    parts = [f"{name}={text}" for name, text in read.items()]
    text = ", ".join(parts)
    if made:
        text += (" -> " if text else "") + ", ".join(
            f"{name} {value}" if name == "return" else f"{name}={value}" for name, value in made.items()
        )
    return truncate(text, 160)


def _names_tests(words: Sequence[str]) -> bool:
    """Whether a command line of unittest names tests, and does not discover them."""
    return bool(words) and words[0] != "discover" and any(not word.startswith("-") for word in words)


def _options(words: tuple[str, ...], root: Path) -> list[str]:
    """The options of a command line of pytest, without the tests and what chooses among them."""
    kept: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word in _CHOOSING:
            del waiting[:1]
        elif word in _FLAGS or word.partition("=")[0] in _CHOOSING:
            continue
        elif word.startswith("-") or not (root / word.partition("::")[0]).exists():
            kept.append(word)
    return kept


def _related(file: Path) -> list[str]:
    """Other test files beside one that import the same modules, those with the most in common first."""
    own = _imports(file)
    files = [each for each in sorted(file.parent.rglob("*.py"))[:_MAX_SEARCHED] if each != file]
    tests = [each for each in files if each.name.startswith("test") or each.stem.endswith("_test")]
    shared = {each: len(own & _imports(each)) for each in tests}
    near = sorted((each for each in tests if shared[each]), key=lambda each: (-shared[each], each.stat().st_size))
    return [str(each) for each in near[:_MAX_FILES]]


def _imports(file: Path) -> set[str]:
    """The modules and names that a file imports, but for those that every test imports."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
    common = {"pytest", "unittest", "os", "sys", "re", "typing", "collections", "datetime", "json", "__future__"}
    return {each for each in found if each.partition(".")[0] not in common}
