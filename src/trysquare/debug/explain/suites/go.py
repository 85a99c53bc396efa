"""Tests of Go: `go test` with its coverage of each test, and delve for the values."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trysquare.core.json import JsonObject
from trysquare.debug.explain.suites.stops import FailingProgram, failing_frames
from trysquare.debug.explain.suites.suite import (
    CommandRunner,
    Deadline,
    Executed,
    Frame,
    Line,
    SuiteRun,
    TestRun,
    function_names,
    json_lines,
    not_compiled,
    require_program,
    split_options,
)
from trysquare.debug.sessions.launch import Target

_VALUE_OPTIONS = ("-run", "-skip", "-tags", "-timeout", "-count", "-cpu", "-parallel", "-mod", "-modfile", "-shuffle")
_BUILD_OPTIONS = ("-tags", "-mod", "-modfile", "-race", "-msan", "-asan")
_MAX_FAILING = 20
"""Failing tests whose lines are counted."""
_FAIL = "testing.(*common).Fail"
"""What Error, Fatal, FailNow and the packages of assertions call in the end."""
_HIDDEN = ("*testing.T", "*testing.common")
_LOGGED = re.compile(r"^\s+(?P<file>[\w./-]+\.go):(?P<line>\d+): ?(?P<text>.*)$")
_PANIC = re.compile(r"^panic: (?P<text>.*?)(?: \[recovered\].*)?$")
_AT = re.compile(r"^\t(?P<file>/.+\.go):(?P<line>\d+)(?: \+0x[0-9a-f]+)?$")
_COMPILER = re.compile(r"^(?P<file>[\w./-]+\.go):(?P<line>\d+):(?:\d+:)? (?P<text>.+)$", re.MULTILINE)
_BLOCK = re.compile(r"(?P<file>.+):(?P<line>\d+)\.(?P<column>\d+),(?P<last>\d+)\.(?P<end>\d+) \d+ (?P<count>\d+)")
_FUNCTION = re.compile(r"func (?:\([^)]*\) )?(\w+)")
_NOISE = re.compile(r"^\s*(?:=== |--- )")


def find_suite(target: Target, root: Path) -> GoSuite | None:
    """The tests that `go test …`, a `_test.go` file or a test in it stands for."""
    words = list(target.words)
    file, _, name = words[0].partition("::")
    if file.endswith("_test.go"):
        package = f"./{Path(file).parent.as_posix()}" if not Path(file).is_absolute() else str(Path(file).parent)
        names = [name.replace("::", "/")] if name else _tests_in(root / file)
        pattern = "|".join(_pattern(each) for each in names)
        chosen = ("-run", pattern) if pattern else ()
        return GoSuite(root=root, packages=(package,), options=(*chosen, *words[1:]))
    if Path(words[0]).name != "go" or words[1:2] != ["test"]:
        return None
    options, packages = _options(words[2:])
    go = words[0] if "/" in words[0] else "go"
    return GoSuite(root=root, packages=tuple(packages) or (".",), options=tuple(options), go=go)


def _tests_in(file: Path) -> list[str]:
    try:
        return re.findall(r"^func (Test\w*)\(", file.read_text(encoding="utf-8", errors="replace"), re.MULTILINE)
    except OSError:
        return []


def _options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of `go test`, and its packages."""
    end = words.index("-args") if "-args" in words else len(words)
    options, packages = split_options(words[:end], {*_VALUE_OPTIONS, *(f"-{each}" for each in _VALUE_OPTIONS)})
    return [*(each for each in options if each not in ("-json", "-v")), *words[end:]], packages


def _pattern(name: str) -> str:
    """The value of -run for one test: each part of its name is a pattern."""
    return "/".join(f"^{re.escape(part)}$" for part in name.split("/"))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Package:
    path: str
    folder: Path


@dataclass(kw_only=True, slots=True)
class _Result:
    """A test as `go test -json` reports it."""

    package: str
    name: str
    action: str = ""
    output: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, kw_only=True, slots=True)
class GoSuite:
    root: Path
    packages: tuple[str, ...]
    options: tuple[str, ...] = ()
    go: str = "go"

    async def run(self, runner: CommandRunner, *, budget: float) -> SuiteRun:
        require_program(self.go, "apt-get install golang-go delve")
        root = self.root.resolve()
        command = [self.go, "test", "-json", *self._named(), *self.packages, *self._program_options()]
        ended = await runner.execute(command, root, keeps=64_000_000)
        results = _results(json_lines(ended.output))
        if not results and ended.exit_code:
            return self._not_built(ended, root)
        failed = [each for each in results if each.action == "fail"]
        passed = [each for each in results if each.action == "pass"]
        text = "".join(line for each in failed for line in each.output)
        if not failed:
            return SuiteRun(tests=tuple(_plain(each) for each in passed), output=text, exit_code=ended.exit_code)
        packages = {each.path: each for each in await self._list(runner, root)}
        package = packages.get(failed[0].package)
        if package is None:
            return SuiteRun(tests=tuple(_plain(each) for each in failed), output=text, exit_code=ended.exit_code)
        here = [each for each in failed if each.package == package.path]
        others = [each for each in failed if each.package != package.path]
        beside = [each for each in passed if each.package == package.path]
        measured = _Measured(suite=self, runner=runner, root=root, package=package, packages=packages)
        tests, not_run, notes = await measured.tests(here, beside, budget)
        return SuiteRun(
            tests=(*tests, *(_plain(each) for each in others)), output=text, exit_code=ended.exit_code,
            functions=measured.functions, not_run=not_run, notes=notes,
        )  # fmt: skip

    def build_options(self) -> list[str]:
        """The options that decide what is built."""
        kept: list[str] = []
        waiting = list(self.options)
        while waiting:
            word = waiting.pop(0)
            name = word.partition("=")[0].replace("--", "-")
            value = [waiting.pop(0)] if name in _VALUE_OPTIONS and "=" not in word and waiting else []
            if name in _BUILD_OPTIONS:
                kept += [word, *value]
        return kept

    def _named(self) -> list[str]:
        end = self.options.index("-args") if "-args" in self.options else len(self.options)
        return list(self.options[:end])

    def _program_options(self) -> list[str]:
        return list(self.options[len(self._named()) :])

    async def _list(self, runner: CommandRunner, root: Path) -> list[_Package]:
        """The packages of the module, with their directories."""
        listed = await runner.execute(
            [self.go, "list", "-f", "{{.ImportPath}}\t{{.Dir}}", "./...", *self.packages], root
        )
        found = [line.split("\t") for line in listed.output.splitlines() if line.count("\t") == 1]
        return [_Package(path=path, folder=Path(folder)) for path, folder in found]

    def _not_built(self, ended: Executed, root: Path) -> SuiteRun:
        """The run of tests that the compiler refused."""
        plain = "".join(str(each.get("Output") or "") for each in json_lines(ended.output))
        found = _COMPILER.search(f"{ended.output}\n{plain}")
        if found is None:
            return SuiteRun(tests=(), output=(plain + ended.output)[-4000:], exit_code=ended.exit_code)
        return not_compiled(str((root / found["file"]).resolve()), int(found["line"]), found["text"], ended)


def _results(events: Iterable[JsonObject]) -> list[_Result]:
    """The tests that passed and failed; a test with subtests only if none of them failed."""
    found: dict[tuple[str, str], _Result] = {}
    for each in events:
        name = str(each.get("Test") or "")
        if not name:
            continue
        package = str(each.get("Package") or "")
        result = found.setdefault((package, name), _Result(package=package, name=name))
        if each.get("Action") == "output":
            result.output.append(str(each.get("Output") or ""))
        elif each.get("Action") in ("pass", "fail", "skip"):
            result.action = str(each["Action"])
    parents = {
        (each.package, parent)
        for each in found.values()
        for parent in _parents(each.name)
        if each.action == found[each.package, parent].action == "fail"
    }
    # A test that was running when another one panicked has no result: it did not fail itself.
    return [each for key, each in found.items() if each.action in ("pass", "fail") and key not in parents]


def _parents(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _plain(result: _Result) -> TestRun:
    """A test by its report alone."""
    error, detail = _error(result.output)
    return TestRun(name=result.name, failed=result.action == "fail", error=error, detail=tuple(detail))


def _error(output: Sequence[str]) -> tuple[str, list[str]]:
    """The first line that a failing test logged or panicked with, and the lines after it."""
    lines = [line.rstrip("\n") for line in output if not _NOISE.match(line)]
    for number, line in enumerate(lines):
        if panic := _PANIC.match(line):
            return f"panic: {panic['text']}", []
        if logged := _LOGGED.match(line):
            rest = [each.strip() for each in lines[number + 1 :] if each.strip() and not _LOGGED.match(each)]
            text = logged["text"].strip() or (rest.pop(0) if rest else "")
            return text, [each for each in rest if not each.startswith(("panic:", "goroutine "))]
    return "The test failed without a message.", []


@dataclass(kw_only=True, slots=True)
class _Measured:
    """Runs tests of one package by themselves, with the lines of each."""

    suite: GoSuite
    runner: CommandRunner
    root: Path
    package: _Package
    packages: dict[str, _Package]
    functions: dict[Line, str] = field(default_factory=dict[Line, str])

    async def tests(
        self, failed: Sequence[_Result], passed: Sequence[_Result], budget: float
    ) -> tuple[list[TestRun], int, tuple[str, ...]]:
        """The tests, how many passing ones were left out, and what is missing."""
        with tempfile.TemporaryDirectory(prefix="trysquare-") as name:
            folder = Path(name)
            first, *others = [self._by_report(_plain(each), each.output) for each in failed]
            shown = await self._with_frames(first, folder)
            notes = [] if isinstance(shown, TestRun) else [shown]
            first = shown if isinstance(shown, TestRun) else first
            if budget <= 0:
                return [first, *others], len(passed), tuple(notes)
            program = folder / "covered.test"
            built = await self._build(program, ["-cover", "-covermode=set", "-coverpkg=./..."])
            if built:
                return [first, *others], len(passed), (*notes, f"No suspects: coverage was not built: {built}")
            deadline = Deadline(budget)
            first = await self._covered(first, program, folder)
            if first.lines is None and first.frames:
                notes.append("It ended before Go wrote its coverage: only the lines of its stack are known.")
                first = replace(first, lines=frozenset((each.file, each.line) for each in first.frames))
            others = [await self._covered(each, program, folder) for each in others[:_MAX_FAILING]]
            tests = [first, *others]
            # A test with subtests ran them too.
            own = [each for each in passed if not any(other.name.startswith(f"{each.name}/") for other in passed)]
            for number, each in enumerate(own):
                if deadline.left <= 0:
                    return tests, len(own) - number, tuple(notes)
                tests.append(await self._covered(_plain(each), program, folder))
            return tests, 0, tuple(notes)

    async def _build(self, program: Path, options: Sequence[str]) -> str:
        """Build the tests; what the compiler said, if it refused."""
        command = [self.suite.go, "test", "-c", *self.suite.build_options(), *options, "-o", str(program)]
        ended = await self.runner.execute([*command, self.package.path], self.root)
        return "" if ended.exit_code == 0 else ended.output.strip()[-300:] or f"exit code {ended.exit_code}"

    async def _covered(self, test: TestRun, program: Path, folder: Path) -> TestRun:
        profile = folder / "profile"
        profile.unlink(missing_ok=True)
        words = [str(program), f"-test.run={_pattern(test.name)}", f"-test.coverprofile={profile}"]
        await self.runner.execute(words, self.package.folder)
        if not profile.exists():
            return test
        return replace(test, lines=frozenset(self._lines(profile.read_text(encoding="utf-8"))))

    def _lines(self, profile: str) -> Iterator[Line]:
        for block in _BLOCK.finditer(profile):
            package, _, base = block["file"].rpartition("/")
            known = self.packages.get(package)
            if block["count"] == "0" or known is None:
                continue
            file = str(known.folder / base)
            texts = self._read(file)
            for line in range(int(block["line"]), min(int(block["last"]), len(texts)) + 1):
                begin = int(block["column"]) - 1 if line == int(block["line"]) else 0
                end = int(block["end"]) - 1 if line == int(block["last"]) else None
                if re.search(r"\w", texts[line - 1][begin:end]):
                    yield file, line

    def _read(self, file: str) -> list[str]:
        """The lines of a source file; its functions are noted."""
        try:
            texts = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []
        if (file, 0) not in self.functions:
            self.functions.update(function_names(file, texts, _FUNCTION))
            self.functions[file, 0] = ""
        return texts

    async def _with_frames(self, test: TestRun, folder: Path) -> TestRun | str:
        """The test with the user's frames where it fails, or why there are none."""
        program = folder / "debugged.test"
        if built := await self._build(program, ["-gcflags=-N -l"]):
            return f"No values: the test was not built for the debugger: {built}"
        found = await failing_frames(
            self.runner,
            FailingProgram(
                language="go", words=(str(program), f"-test.run={_pattern(test.name)}"), folder=self.package.folder,
                root=self.root, hidden_types=_HIDDEN, functions=() if test.error.startswith("panic:") else (_FAIL,),
            ),
        )  # fmt: skip
        if not found.frames:
            return found.note or "No values: the failure did not happen again under the debugger."
        frames = tuple(replace(each, function=each.function.rpartition("/")[2]) for each in found.frames)
        for each in frames:
            self._read(each.file)
        return replace(test, frames=frames, file=next((f.file for f in frames if f.file.endswith("_test.go")), ""))

    def _by_report(self, test: TestRun, output: Sequence[str]) -> TestRun:
        """The test with the lines that its report names."""
        lines = [line.rstrip("\n") for line in output]
        logged = [found for line in lines if (found := _LOGGED.match(line)) or (found := _AT.match(line))]
        frames = tuple(
            Frame(file=str(self.package.folder / each["file"]), line=int(each["line"]))
            for each in logged
            if (self.package.folder / each["file"]).is_relative_to(self.root)
        )
        return replace(test, frames=frames)
