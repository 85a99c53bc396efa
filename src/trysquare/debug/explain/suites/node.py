"""Tests of JavaScript and TypeScript: node:test, jest and vitest, by V8's own coverage and debugger."""

from __future__ import annotations

import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast
from urllib.parse import unquote, urlsplit

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.debug.adapters.node import PACKAGE
from trysquare.debug.cdp.breakpoints import SourceMap, read_source_map
from trysquare.debug.explain.suites.suite import CommandRunner, Executed, Frame, Line, SuiteRun, TestRun, json_lines
from trysquare.debug.sessions.launch import Target
from trysquare.debug.sources import Sources, relative

_FOLDER = Path(__file__).parent
_SPECTRUM = str(_FOLDER / "spectrum.cjs")
_TEST_FILE = re.compile(r"(?:.*[._-](?:test|spec)|test(?:[_-].*)?)\.[cm]?[jt]sx?")
_SUFFIX = re.compile(r"\.[cm]?[jt]sx?$")
_STARTERS = {"npx": 1, "bunx": 1, "yarn": 1, "pnpm": 1}
_NAME_OPTIONS = ("-t", "--testNamePattern", "--test-name-pattern")
_STACK = re.compile(
    r"^\s*at (?:(?P<function>.+?) \()?(?:file://)?(?P<file>/[^()]+?):(?P<line>\d+):\d+\)?$", re.MULTILINE
)
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_MAX_SPECTRUM = 256_000_000

Framework = Literal["node:test", "jest", "vitest"]


def find_suite(target: Target, root: Path) -> NodeSuite | None:
    """The tests that a command names, if it runs one of the frameworks."""
    words = _without_starter(list(target.words), root)
    if not words:
        return None
    node = target.python or (words[0] if "/" in words[0] and Path(words[0]).name in ("node", "nodejs") else "")
    rest = words[1:] if Path(words[0]).name in ("node", "nodejs") else words
    framework, rest = _framework(rest, root, is_node=len(rest) < len(words))
    if framework is None:
        return None
    rest, wanted = _names(rest)
    return NodeSuite(framework=framework, words=tuple(rest), root=root, node=node, wanted=wanted)


def _without_starter(words: list[str], root: Path) -> list[str]:
    """A command without npx and the like; `npm test` and `npm run X` are what package.json says."""
    if words[0] in _STARTERS and len(words) > 1:
        words = words[2:] if words[1] in ("exec", "run", "dlx") and len(words) > 2 else words[1:]
        while words and words[0].startswith("-"):
            words = words[1:]
    is_script = words[:2] in (["npm", "test"], ["npm", "t"]) or words[:2] == ["npm", "run"]
    if not is_script:
        return words
    name, more = (words[2:3] or [""])[0] if words[1] == "run" else "test", words[3 if words[1] == "run" else 2 :]
    script = str(as_object(_package(root).get("scripts")).get(name) or "")
    # A script with operators of the shell is more than one command, and is left alone.
    if not script or re.search(r"[;&|<>$`]", script):
        return words
    return _without_starter([*shlex.split(script), *(each for each in more if each != "--")], root)


def _package(root: Path) -> JsonObject:
    try:
        return as_object(json.loads((root / "package.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def _framework(words: list[str], root: Path, *, is_node: bool) -> tuple[Framework | None, list[str]]:
    """The framework that a command runs, and the words for it."""
    if not words:
        return None, []
    program = Path(words[0]).name.removesuffix(".js").removesuffix(".mjs")
    if program == "jest":
        return "jest", words[1:]
    if program == "vitest":
        return "vitest", [word for word in words[1:] if word not in ("run", "watch", "dev")]
    if is_node and "--test" in words:
        return "node:test", [word for word in words if word != "--test"]
    files = [word.partition("::")[0] for word in words if _SUFFIX.search(word.partition("::")[0])]
    if not files or not (is_node or words[0].partition("::")[0] == files[0]):
        return None, []
    found = _framework_of(root / files[0], root)
    return (None, []) if is_node and found != "node:test" else (found, words)


def _framework_of(file: Path, root: Path) -> Framework | None:
    """The framework of a test file, by what it imports, or else by what the project depends on."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for name in ("node:test", "vitest"):
        if re.search(rf"""(?:from|require\(|import)\s*\(?["']{name}["']""", text):
            return cast(Framework, name)
    if not _TEST_FILE.fullmatch(file.name) and "__tests__" not in file.parts:
        return None
    package = _package(root)
    known = {**as_object(package.get("dependencies")), **as_object(package.get("devDependencies"))}
    by_name: tuple[Framework, ...] = ("vitest", "jest")
    named: list[Framework] = [name for name in by_name if name in known]
    installed: list[Framework] = [name for name in by_name if (root / "node_modules" / name).exists()]
    chosen = named or installed
    return chosen[0] if chosen else None


def _names(words: Sequence[str]) -> tuple[list[str], str]:
    """The words without a choice of tests by name, and that choice: neighbours are run too, to compare."""
    kept: list[str] = []
    wanted = ""
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        option, _, value = word.partition("=")
        if option in _NAME_OPTIONS:
            wanted = value or (waiting.pop(0) if waiting else "")
        elif "::" in word and _SUFFIX.search(word.partition("::")[0]):
            file, _, name = word.partition("::")
            kept.append(file)
            wanted = rf"^(?:.*\W)?{re.escape(re.sub(r'::| > ', ' ', name))}$"
        else:
            kept.append(word)
    return kept, wanted


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeSuite:
    framework: Framework
    words: tuple[str, ...]
    root: Path
    node: str = ""
    wanted: str = ""
    """A pattern for the names of the tests to explain."""

    async def run(self, runner: CommandRunner, *, budget: float) -> SuiteRun:
        del budget  # the tests of the command run in one process, with and without a failure
        root = str(self.root.resolve())
        with tempfile.TemporaryDirectory(prefix="trysquare-") as folder:
            spectrum, report = Path(folder) / "spectrum", Path(folder) / "report"
            env = {
                "TRYSQUARE_SPECTRUM": str(spectrum), "TRYSQUARE_ROOT": root, "NO_COLOR": "1", "FORCE_COLOR": "0",
                "CI": "true",
            }  # fmt: skip
            words = await self._command(runner, report, env)
            ended = await runner.execute(words, self.root, env)
            outcomes = _read_report(self.framework, report)
            lines = _read_lines(spectrum)
        if outcomes is None:
            raise self._no_report(ended)
        recorded = _Recorded(lines, root)
        tests = tuple(recorded.test(outcome) for outcome in outcomes)
        chosen = self._chosen(tests)
        return SuiteRun(
            tests=chosen, output=ended.output, exit_code=ended.exit_code, functions=recorded.functions,
            notes=_notes(chosen, self.framework),
        )  # fmt: skip

    async def _command(self, runner: CommandRunner, report: Path, env: dict[str, str]) -> list[str]:
        node = self.node or PACKAGE.program(runner.sessions.chosen)
        if self.framework == "node:test":
            env["NODE_OPTIONS"] = f"{os.environ.get('NODE_OPTIONS', '')} --require {json.dumps(_SPECTRUM)}".strip()
            reporter = [f"--test-reporter={_FOLDER / 'node_reporter.mjs'}", f"--test-reporter-destination={report}"]
            return [node, "--test", *reporter, *self.words]
        if self.framework == "vitest":
            return [node, str(_FOLDER / "vitest_run.mjs"), str(self.root), _SPECTRUM, str(report), *self.words]
        jest = str(self._installed("jest") / "bin" / "jest.js")
        options = [word for word in self.words if word.startswith("-")]
        asked = await runner.execute([node, jest, "--showConfig", *options], self.root)
        setup = [*_setup_files(asked.output), _SPECTRUM]
        added = [word for file in setup for word in ("--setupFilesAfterEnv", file)]
        # Its last option is one with a value of its own: a file after a list of values would be one of them.
        return [node, jest, *added, "--runInBand", "--json", f"--outputFile={report}", *self.words]

    def _installed(self, package: str) -> Path:
        for folder in (self.root, *self.root.parents):
            if (found := folder / "node_modules" / package).exists():
                return found
        raise ToolError(
            f"`{package}` is not installed in `{self.root}`.",
            code=ErrorCode.SESSION_START_FAILED,
            instruction="Install the project's packages: npm ci",
        )

    def _chosen(self, tests: tuple[TestRun, ...]) -> tuple[TestRun, ...]:
        """The tests, those that were asked for first; other tests that fail are left out."""
        if not self.wanted:
            return tests
        try:
            pattern = re.compile(self.wanted)
        except re.error:
            pattern = re.compile(re.escape(self.wanted))
        asked = tuple(
            each for each in tests if pattern.search(each.name) or pattern.search(each.name.replace(" > ", " "))
        )
        return (*asked, *(each for each in tests if each not in asked and not each.failed)) if asked else tests

    def _no_report(self, ended: Executed) -> ToolError:
        return ToolError(
            f"{self.framework} ended with exit code {ended.exit_code} and reported no test.",
            code=ErrorCode.EXECUTION_FAILED,
            instruction="Read `output`; give another Node with runtime_path (--python) if this one is too old.",
            fields={"output": ended.output[-1500:].strip()},
        )


def _setup_files(shown: str) -> list[str]:
    """The setup files of jest's configuration: those of the command line would replace them."""
    try:
        configs = as_list(json.loads(shown[shown.index("{") :])["configs"])
    except (ValueError, KeyError):
        return []
    files = (str(file) for config in configs for file in as_list(as_object(config).get("setupFilesAfterEnv")))
    return list(dict.fromkeys(files))


def _notes(tests: Iterable[TestRun], framework: str) -> tuple[str, ...]:
    if any(each.failed and each.lines is None for each in tests):
        return (f"Its lines are not known: it failed before a test began, or {framework} ran it elsewhere.",)
    return ()


def _read_lines(file: Path) -> list[JsonObject]:
    if not file.exists() or file.stat().st_size > _MAX_SPECTRUM:
        return []
    return json_lines(file.read_text(encoding="utf-8", errors="replace"))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Outcome:
    """A test as its framework reports it."""

    name: str
    file: str
    failed: bool
    error: str = ""
    detail: tuple[str, ...] = ()
    stack: str = ""
    thrown: str = ""
    """The first line of the message, as it was thrown."""


def _read_report(framework: Framework, file: Path) -> list[_Outcome] | None:
    if not file.exists():
        return None
    if framework == "node:test":
        ended = [each for each in _read_lines(file) if not each["skipped"]]
        # A test fails with its subtests, which are listed by themselves.
        own = [each for each in ended if as_object(each.get("error")).get("reason") != "subtestsFailed"]
        return [_node_outcome(each) for each in own] or None
    try:
        report = as_object(json.loads(file.read_text(encoding="utf-8", errors="replace")))
    except ValueError:
        return None
    found: list[_Outcome] = []
    for suite in (as_object(each) for each in as_list(report.get("testResults"))):
        tests = [as_object(each) for each in as_list(suite.get("assertionResults"))]
        found += [_listed_outcome(each, str(suite["name"])) for each in tests if each["status"] in ("passed", "failed")]
        if suite.get("status") == "failed" and not any(each["status"] == "failed" for each in tests):
            found.append(_failure(str(suite["name"]), str(suite["name"]), str(suite.get("message") or "")))
    return found


def _node_outcome(each: JsonObject) -> _Outcome:
    name, file = str(each["name"]), str(each.get("file") or "")
    if not each["failed"]:
        return _Outcome(name=name, file=file, failed=False)
    error = as_object(each.get("error"))
    message = str(error.get("message") or "")
    if written := str(each.get("written") or ""):
        thrown = re.search(r"^\w*Error\b.*$", written, re.MULTILINE)
        return replace(_failure(name, file, thrown.group(0) if thrown else message), stack=written)
    found = _failure(name, file, message)
    kind = str(error.get("type") or "Error")
    compared = [f"{key}: {error[key]}" for key in ("expected", "actual") if error.get(key) is not None]
    return replace(
        found, error=f"{kind}: {found.error}", detail=(*found.detail, *compared), stack=str(error.get("stack") or "")
    )


def _listed_outcome(each: JsonObject, file: str) -> _Outcome:
    messages = [str(message) for message in as_list(each.get("failureMessages"))]
    name = str(each["fullName"])
    return (
        _failure(name, file, messages[0] if messages else "")
        if each["status"] == "failed"
        else _Outcome(name=name, file=file, failed=False)
    )


def _failure(name: str, file: str, text: str) -> _Outcome:
    text = _COLORS.sub("", text)
    begin = _STACK.search(text)
    message = text[: begin.start()] if begin else text
    first, *rest = [line.strip() for line in message.splitlines() if line.strip()] or ["Error"]
    if not begin and "failed to run" in first:
        # jest's text on a file that could not be loaded has the error at its end.
        first = next((line for line in reversed(rest) if re.match(r"\w*Error: ", line)), first)
    thrown = first.partition(": ")[2] or first
    if first.endswith(":") and rest:
        first = f"{first} {rest.pop(0)}"
    return _Outcome(name=name, file=file, failed=True, error=first, thrown=thrown, detail=tuple(rest), stack=text)


class _Recorded:
    """What the injected script wrote: scripts, the lines of each test, and what was thrown in it."""

    def __init__(self, found: Sequence[JsonObject], root: str) -> None:
        self._root = root
        self._sources = Sources()
        self._scripts: dict[tuple[int, str], tuple[str, SourceMap | None]] = {}
        self._tests: dict[tuple[str, str], JsonObject] = {}
        self.functions: dict[Line, str] = {}
        for each in found:
            if each["kind"] == "script":
                url, mapped = str(each["url"]), str(each["map"])
                self._scripts[int(each["process"]), str(each["id"])] = (
                    _path(url), read_source_map(url, mapped) if mapped else None
                )  # fmt: skip
            else:
                self._tests[os.path.realpath(str(each["file"])), str(each["name"])] = each

    def test(self, outcome: _Outcome) -> TestRun:
        file = os.path.realpath(outcome.file)
        found = self._tests.get((file, outcome.name))
        lines = None if found is None else frozenset(self._lines(found))
        run = TestRun(
            name=outcome.name, file=file, failed=outcome.failed, error=outcome.error, detail=outcome.detail, lines=lines
        )
        if not outcome.failed:
            return run
        thrown = [] if found is None else [as_object(each) for each in as_list(found["thrown"])]
        process = 0 if found is None else int(found["process"])
        own = next((each for each in reversed(thrown) if outcome.thrown in str(each["text"])), None)
        frames = self._stack(outcome.stack) if own is None else self._frames(process, own)
        is_plain = not frames or outcome.error.startswith("thrown: ")
        if own is None and is_plain and thrown and thrown[-1]["own"]:
            # Something other than an error was thrown: a framework shows little of it, and no stack.
            own, frames = thrown[-1], self._frames(process, thrown[-1])
            run = replace(run, error=f"thrown: {own['text']}", detail=())
        if own is not None and not outcome.detail:
            run = replace(run, detail=tuple(_compared(as_object(own.get("compared")))))
        frames = tuple(each if each.function else replace(each, function=outcome.name) for each in frames)
        swallowed = [self._swallowed(process, each) for each in thrown if each is not own]
        return replace(run, frames=frames, swallowed=tuple(dict.fromkeys(each for each in swallowed if each)))

    def _lines(self, found: JsonObject) -> Iterable[Line]:
        for each in (as_object(part) for part in as_list(found["lines"])):
            path, mapped = self._scripts[int(found["process"]), str(each["script"])]
            heads = self._heads(each, path, mapped)
            for start_line, start, end_line, end in cast(list[list[int]], each["ranges"]):
                begin, finish = (start_line, start), (end_line, end)
                inside = mapped.originals(begin, finish) if mapped else self._plain(path, begin, finish)
                yield from (line for line in inside if line not in heads and line[0].startswith(self._root))

    def _heads(self, each: JsonObject, path: str, mapped: SourceMap | None) -> set[Line]:
        """The lines at which functions begin that go on below, and the names of all lines in them."""
        heads: set[Line] = set()
        for name, line, column, last, end_column in cast(list[tuple[str, int, int, int, int]], each["functions"]):
            begin = self._original(path, mapped, line, column)
            end = self._original(path, mapped, last, max(0, end_column - 1)) or begin
            if begin is None or end is None or begin[0] != end[0]:
                continue
            for number in range(begin[1], end[1] + 1):
                # V8 has functions of its own, such as the one that sets the fields of an object.
                if name and not name.startswith("<"):
                    self.functions[begin[0], number] = name
            if end[1] > begin[1]:
                heads.add(begin)
        return heads

    def _plain(self, path: str, begin: tuple[int, int], end: tuple[int, int]) -> Iterable[Line]:
        """The lines of a script without a source map of which a part with code is in a range."""
        texts = self._sources.lines(path)
        for line in range(begin[0], min(end[0] + 1, len(texts))):
            first = begin[1] if line == begin[0] else 0
            last = end[1] if line == end[0] else len(texts[line])
            if re.search(r"\w", texts[line][first:last]):
                yield path, line + 1

    def _original(self, path: str, mapped: SourceMap | None, line: int, column: int) -> Line | None:
        if mapped is None:
            return path, line + 1
        found = mapped.original(line, column)
        return None if found is None else (os.path.realpath(found[0]), found[1] + 1)

    def _frames(self, process: int, thrown: JsonObject) -> tuple[Frame, ...]:
        found: list[Frame] = []
        for each in (as_object(part) for part in as_list(thrown["frames"])):
            path, mapped = self._scripts[process, str(each["script"])]
            at = self._original(path, mapped, int(each["line"]), int(each["column"]))
            if at is not None:
                name = str(each["function"]) or self.functions.get(at, "")
                values = {key: str(value) for key, value in as_object(each["values"]).items()}
                found.append(Frame(file=at[0], line=at[1], function=name, values=values))
        return tuple(found)

    def _stack(self, text: str) -> tuple[Frame, ...]:
        """The user's frames of a stack as text, without values."""
        found = [
            Frame(file=os.path.realpath(each["file"]), line=int(each["line"]), function=each["function"] or "")
            for each in _STACK.finditer(text)
        ]
        return tuple(each for each in found if each.file.startswith(self._root) and "/node_modules/" not in each.file)

    def _swallowed(self, process: int, thrown: JsonObject) -> str:
        """An error that the user's own code threw and that did not end the test."""
        frames = self._frames(process, thrown)
        if not thrown["own"] or not frames:
            return ""
        first = str(thrown["text"]).partition("\n")[0]
        return f"{first} at {relative(f'{frames[0].file}:{frames[0].line}', self._root)}"


def _compared(sides: JsonObject) -> Iterable[str]:
    """What an assertion compared, where its message does not say it."""
    for name in (each for each in ("expected", "actual") if each in sides):
        first, *rest = str(sides[name]).splitlines() or [""]
        yield f"{name}: {first}"
        yield from (f"  {line}" for line in rest)


def _path(url: str) -> str:
    return os.path.realpath(unquote(urlsplit(url).path) if url.startswith("file:") else url.partition("?")[0])
