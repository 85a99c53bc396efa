"""Tests of Rust: `cargo test` with the coverage of each test, and lldb for the values."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.threads import run_in_thread
from trysquare.debug.explain.suites.profile import Coverage, Unsupported
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
from trysquare.debug.sources import Sources

_VALUE_OPTIONS = {
    "-p", "--package", "--test", "--bin", "--example", "--bench", "-F", "--features", "--target", "--manifest-path",
    "--profile", "-j", "--jobs", "--exclude", "--color", "--config", "-Z", "--target-dir", "--message-format",
}  # fmt: skip
_HARNESS_VALUES = {"--skip", "--test-threads", "--format", "--logfile", "--color", "-Z", "--shuffle-seed"}
_SHOWING = {"--nocapture", "--no-capture", "--show-output", "-q", "--quiet"}
_MAX_FAILING = 20
_RESULT = re.compile(r"^test (?P<name>.+?)(?: - should panic)? \.\.\. (?P<result>ok|FAILED)$", re.MULTILINE)
_LISTED = re.compile(r"^(?P<name>.+): test$", re.MULTILINE)
_PANIC = re.compile(
    r"panicked at (?P<file>[^\n]+?):(?P<line>\d+):\d+:\n(?P<text>.*?)(?=\nstack backtrace:|\nnote: |\n\n|\Z)", re.DOTALL
)
_OLD_PANIC = re.compile(r"panicked at '(?P<text>.*?)', (?P<file>[^\n']+?):(?P<line>\d+):\d+$", re.DOTALL | re.MULTILINE)
_FAILED = re.compile(r"^(?:Error: .*|note: test did not panic as expected.*)$", re.MULTILINE)
_CLOSURE = re.compile(r"\{+(?:closure|impl)")
_TEST_ATTRIBUTE = re.compile(r"\s*#\[(?:cfg\(.*\btest\b.*\)|(?:\w+::)*\w*test\w*(?:\(.*\))?)\]")
_FUNCTION = re.compile(r"\s*(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe |extern (?:\"\w+\" )?)*fn (\w+)")


def find_suite(target: Target, root: Path) -> CargoSuite | None:
    """The tests that `cargo test …`, or a test in a file of a crate, stands for."""
    words = list(target.words)
    file, _, name = words[0].partition("::")
    if file.endswith(".rs") and name:
        folder = next((each for each in (root / file).resolve().parents if (each / "Cargo.toml").exists()), None)
        if folder is None:
            return None
        inside = Path(file).resolve() if Path(file).is_absolute() else (root / file).resolve()
        chosen = ("--test", inside.stem) if inside.parent == folder / "tests" else ()
        return CargoSuite(root=root, folder=folder, options=(*chosen, *words[1:]), wanted=name, filters=(name,))
    if Path(words[0]).name != "cargo" or words[1:2] not in (["test"], ["t"]):
        return None
    options, filters, harness = _split(words[2:])
    return CargoSuite(
        root=root, folder=root, options=tuple(options), filters=tuple(filters), harness=tuple(harness),
        cargo=words[0] if "/" in words[0] else "cargo",
    )  # fmt: skip


def _split(words: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """The options of cargo, the names to filter by, and the options of the tests' own program."""
    end = words.index("--") if "--" in words else len(words)
    options, filters = split_options(words[:end], _VALUE_OPTIONS)
    harness, more = split_options(words[end + 1 :], _HARNESS_VALUES)
    return [each for each in options if each not in ("-q", "--quiet")], [*filters, *more], harness


@dataclass(frozen=True, kw_only=True, slots=True)
class CargoSuite:
    root: Path
    folder: Path
    """Where cargo runs."""
    options: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    harness: tuple[str, ...] = ()
    cargo: str = "cargo"
    wanted: str = ""
    """The end of the name of the one test to explain."""

    async def run(self, runner: CommandRunner, *, budget: float) -> SuiteRun:
        require_program(self.cargo, "apt-get install cargo lldb-19")
        command = [self.cargo, "test", "--no-run", "--message-format=json", *self._coverage(), *self.options]
        folder = await self._target_folder(runner)
        built = await runner.execute(
            command, self.folder, {"CARGO_TARGET_DIR": str(folder / "trysquare"), **self._flags()}, keeps=64_000_000
        )
        messages = json_lines(built.output)
        if built.exit_code != 0:
            return self._not_built(messages, built)
        programs = [self._program(runner, each) for each in sorted(messages, key=_order) if _is_test_program(each)]
        names: list[tuple[str, bool]] = []
        for program in programs:
            found, ended = await program.results()
            if any(failed for _, failed in found):
                return await program.explained(found, ended, budget)
            names += found
        return SuiteRun(tests=tuple(TestRun(name=name) for name, _ in names), exit_code=0, output=built.output[-2000:])

    def _program(self, runner: CommandRunner, built: JsonObject) -> _Program:
        folder = Path(str(built["manifest_path"])).parent
        return _Program(suite=self, runner=runner, file=str(built["executable"]), folder=folder)

    def _coverage(self) -> list[str]:
        # Beside the flags of the project's own configuration; those of the environment would replace them.
        return [] if os.environ.get("RUSTFLAGS") else ["--config", 'build.rustflags=["-Cinstrument-coverage"]']

    def _flags(self) -> dict[str, str]:
        known = os.environ.get("RUSTFLAGS")
        return {"RUSTFLAGS": f"{known} -Cinstrument-coverage"} if known else {}

    async def _target_folder(self, runner: CommandRunner) -> Path:
        """The project's directory for what cargo builds; a part of it of our own keeps the coverage builds apart."""
        words = [self.cargo, "metadata", "--no-deps", "--format-version", "1"]
        ended = await runner.execute([*words, *_option(self.options, "--manifest-path")], self.folder, keeps=16_000_000)
        found = [str(each["target_directory"]) for each in json_lines(ended.output) if "target_directory" in each]
        return Path(found[0]) if found else self.folder / "target"

    def _not_built(self, messages: Sequence[JsonObject], built: Executed) -> SuiteRun:
        """The run of tests that the compiler refused."""
        for each in (as_object(message.get("message")) for message in messages):
            spans = [as_object(span) for span in as_list(each.get("spans"))]
            if each.get("level") != "error" or not spans:
                continue
            first = next((span for span in spans if span.get("is_primary")), spans[0])
            file = str((self.folder / str(first["file_name"])).resolve())
            detail = str(each.get("rendered") or "").strip().splitlines()[1:]
            return not_compiled(
                file, int(first["line_start"]), str(each.get("message")), replace(built, output=""), detail
            )
        text = "\n".join(line for line in built.output.splitlines() if not line.startswith("{"))
        return SuiteRun(tests=(), output=text[-4000:], exit_code=built.exit_code)


def _is_test_program(built: JsonObject) -> bool:
    return bool(built.get("executable")) and bool(as_object(built.get("profile")).get("test"))


def _order(built: JsonObject) -> tuple[bool, str]:
    """As cargo runs them: the crates' own tests first, then the files of tests by their names."""
    target = as_object(built.get("target"))
    return "test" in as_list(target.get("kind")), str(target.get("name"))


def _option(words: Sequence[str], name: str) -> list[str]:
    found = [number for number, each in enumerate(words) if each == name and number + 1 < len(words)]
    return [name, words[found[0] + 1]] if found else []


@dataclass(kw_only=True, slots=True)
class _Program:
    """A program of tests, which one crate or one file of tests is built to."""

    suite: CargoSuite
    runner: CommandRunner
    file: str
    folder: Path
    functions: dict[Line, str] = field(default_factory=dict[Line, str])
    tests: set[Line] = field(default_factory=set[Line])
    """The lines of tests."""
    sources: Sources = field(default_factory=Sources)

    async def results(self) -> tuple[list[tuple[str, bool]], Executed]:
        """The tests that were asked for, and whether each failed."""
        harness = [each for each in self.suite.harness if each not in _SHOWING]
        ended = await self._execute([*harness, *self.suite.filters, "--color", "never"], "/dev/null")
        found = [(each["name"], each["result"] == "FAILED") for each in _RESULT.finditer(ended.output)]
        if ended.exit_code not in (0, 101) and not any(failed for _, failed in found):
            # A test that ended the whole program has no result: alone, it says how.
            for name in [each for each in await self._listed() if each not in {known for known, _ in found}]:
                alone = await self._execute(["--exact", name], "/dev/null")
                found.append((name, alone.exit_code != 0))
        ending = f"::{self.suite.wanted}"
        asked = [each for each in found if self.suite.wanted and f"::{each[0]}".endswith(ending)]
        return asked or found, ended

    async def explained(self, found: Sequence[tuple[str, bool]], ended: Executed, budget: float) -> SuiteRun:
        """The tests of this program, each run by itself."""
        failed = [name for name, has_failed in found if has_failed]
        with tempfile.TemporaryDirectory(prefix="trysquare-") as directory:
            profile = Path(directory) / "profile"
            coverage, missing = await self._coverage()
            tests = [await self._alone(name, profile, coverage) for name in failed[:_MAX_FAILING]]
            # Explained even if it passes by itself: its failure was seen.
            tests = [each if each.failed else replace(each, failed=True, error=_FLAKY) for each in tests]
            tests[0], note = await self._with_values(tests[0])
            beside = [each for each in await self._listed() if each not in failed]
            deadline = Deadline(budget if coverage is not None else 0)
            not_run = len(beside)
            for name in sorted(beside, key=lambda each: each.rpartition("::")[0] != failed[0].rpartition("::")[0]):
                if deadline.left <= 0:
                    break
                test = await self._alone(name, profile, coverage)
                tests += [] if test.failed else [test]
                not_run -= 1
        notes = tuple(each for each in (note, missing) if each)
        return SuiteRun(
            tests=tuple(tests), output=ended.output[-4000:], exit_code=ended.exit_code, functions=self.functions,
            not_run=not_run, notes=notes,
        )  # fmt: skip

    async def _listed(self) -> list[str]:
        ended = await self._execute(["--list", "--format", "terse"], "/dev/null")
        return [each["name"] for each in _LISTED.finditer(ended.output)]

    async def _coverage(self) -> tuple[Coverage | None, str]:
        data = await run_in_thread(Path(self.file).read_bytes)
        try:
            return await run_in_thread(lambda: Coverage(data, self.suite.root.resolve())), ""
        except Unsupported as error:
            return None, f"No suspects: the coverage cannot be read: {error}."

    async def _alone(self, name: str, profile: Path, coverage: Coverage | None) -> TestRun:
        await run_in_thread(lambda: profile.unlink(missing_ok=True))
        ended = await self._execute(["--exact", name, "--nocapture", "--test-threads=1"], str(profile))
        test = TestRun(name=name, failed=ended.exit_code != 0)
        if test.failed:
            test = self._by_report(test, ended.output)
        if coverage is None:
            return test
        try:
            lines = coverage.lines(await run_in_thread(profile.read_bytes))
        except (Unsupported, OSError):
            # A program that was killed writes none.
            return test
        return replace(test, lines=frozenset(each for each in lines if not self._is_left_out(each)))

    def _is_left_out(self, line: Line) -> bool:
        """Whether a line is of a test, or one at which a function begins that goes on below."""
        self._note(line[0])
        text = self.sources.line(*line)
        return line in self.tests or (bool(_FUNCTION.match(text)) and text.endswith("{"))

    def _note(self, file: str) -> None:
        """Note the functions of a file, and the lines of its tests."""
        if (file, 1) in self.functions:
            return
        texts = self.sources.lines(file)
        self.functions.update(function_names(file, texts, _FUNCTION))
        is_test = (self.folder / "tests") in Path(file).parents
        self.tests.update((file, line) for line in (range(len(texts) + 1) if is_test else _test_lines(texts)))

    def _by_report(self, test: TestRun, output: str) -> TestRun:
        """The test with what its panic says."""
        found = _PANIC.search(output) or _OLD_PANIC.search(output)
        if found is None:
            plain = _FAILED.search(output)
            return replace(test, error=plain.group(0) if plain else _last_line(output))
        first, *rest = found["text"].strip().splitlines() or ["panicked"]
        places = (base / found["file"] for base in (self.folder, *self.folder.parents))
        file = next((str(each.resolve()) for each in places if each.exists()), "")
        frames = (Frame(file=file, line=int(found["line"])),) if file else ()
        detail = tuple(each.strip() for each in rest if each.strip())
        return replace(test, error=f"panic: {first}", detail=detail, frames=frames)

    async def _with_values(self, test: TestRun) -> tuple[TestRun, str]:
        """The test with the user's frames where it panics."""
        words = (self.file, "--exact", test.name, "--nocapture", "--test-threads=1")
        found = await failing_frames(
            self.runner,
            FailingProgram(
                language="rust", words=words, folder=self.folder, root=self.suite.root.resolve(),
                env={"RUST_BACKTRACE": "0", "LLVM_PROFILE_FILE": "/dev/null"},
            ),
        )  # fmt: skip
        frames = tuple(each for each in found.frames if not _CLOSURE.search(each.function.removeprefix(test.name)))
        if not frames:
            return test, found.note
        for each in frames:
            self._note(each.file)
        return replace(test, frames=tuple(replace(each, values=_own_values(each.values)) for each in frames)), ""

    async def _execute(self, words: Sequence[str], profile: str) -> Executed:
        env = {"LLVM_PROFILE_FILE": profile, "RUST_BACKTRACE": "0"}
        return await self.runner.execute([self.file, *words], self.folder, env, keeps=4_000_000)


_FLAKY = "It failed with the other tests, and passed by itself: it depends on them, or fails only sometimes."


def _test_lines(texts: Sequence[str]) -> Iterator[int]:
    """The lines of a file's test functions and test modules, which an attribute above them marks."""
    end = 0
    for number, text in enumerate(texts, 1):
        if number <= end or not _TEST_ATTRIBUTE.match(text):
            continue
        indent = text[: len(text) - len(text.lstrip())]
        closing = (each for each in range(number, len(texts)) if texts[each].startswith(f"{indent}}}"))
        end = next(closing, len(texts) - 1) + 1
        yield from range(number, end + 1)


def _own_values(values: Mapping[str, str]) -> dict[str, str]:
    """The values without the variables of the assertion's macro."""
    own = ("left_val", "right_val", "kind") if "left_val" in values else ()
    return {name: text for name, text in values.items() if name not in own}


def _last_line(output: str) -> str:
    lines = [each.strip() for each in output.splitlines() if each.strip()]
    return lines[-1] if lines else "The test failed without a message."
