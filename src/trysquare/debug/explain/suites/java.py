"""Tests of Java: JUnit 5 and 4, by Maven or a command of the JVM, with the JDK's debug interface."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.text import closest_names
from trysquare.core.threads import run_in_thread
from trysquare.debug.adapters.java import PACKAGE, bridge_classes
from trysquare.debug.explain.suites.suite import (
    CommandRunner,
    Executed,
    Frame,
    Line,
    SuiteRun,
    TestRun,
    json_lines,
    not_compiled,
    require_program,
)
from trysquare.debug.sessions.launch import Target
from trysquare.debug.sources import Sources, relative

_BUILT = {"target", "build", "out", "bin", "node_modules"}
_MAX_SOURCES = 20_000
_MAX_REPORT = 256_000_000
_MAX_VALUE = 200
_PACKAGE = re.compile(r"^\s*package\s+([\w.]+)\s*;", re.MULTILINE)
_JUNIT = re.compile(r"^\s*import\s+(?:static\s+)?org\.junit\b", re.MULTILINE)
_HEAD = re.compile(r"^[\w\s.@()]*\b(?:class|record|enum|interface)\s+\w+[^;=]*$")
"""The line at which a class begins: its constructor runs there."""
_COMPILER = re.compile(
    r"^(?:\[ERROR\] )?(?P<file>\S+\.java):(?:\[(?P<at>\d+),\d+\]|(?P<line>\d+): error:) ?(?P<text>.+)$", re.MULTILINE
)
_PICKED_UP = re.compile(r"^(?:\[\w+\] )?Picked up JAVA_TOOL_OPTIONS: .*\n?", re.MULTILINE)
_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_LAUNCHER = "org/junit/platform/console/ConsoleLauncher.class"
_JUNIT_4 = "org/junit/runner/JUnitCore.class"
_DEBIAN = "/usr/share/java/junit-platform-console-standalone.jar"
_METHOD_OPTIONS = ("-m", "--select-method")

Chosen = tuple[str, str]
"""A class and a method of it, as patterns; an empty method stands for all."""


def find_suite(target: Target, root: Path) -> JavaSuite | None:
    """The tests that a command of Maven or Java, or a file of tests, stands for."""
    words = list(target.words)
    file, _, method = words[0].partition("::")
    if file.endswith(".java") and (method or _is_test(root / file)):
        return _of_file((root / file).resolve(), method, words[1:], root)
    program = Path(words[0]).name
    if program in ("mvn", "mvnw", "mvnd"):
        return _of_maven(words, root)
    source = next((at for at, each in enumerate(words) if each.endswith(".java")), None)
    if source is not None and (source == 0 or program == "java"):
        file, arguments = (root / words[source]).resolve(), tuple(words[source + 1 :])
        return JavaSuite(root=root, file=file, words=arguments, program=str(target)) if file.exists() else None
    if program == "java" and any("junit" in each.lower() for each in words):
        words, wanted = _wider(words, _METHOD_OPTIONS)
        return JavaSuite(root=root, words=tuple(words), wanted=wanted)
    is_jar = words[0].endswith(".jar")
    if program == "java" or is_jar:
        return JavaSuite(root=root, words=("java", "-jar", *words) if is_jar else tuple(words), program=str(target))
    return None


def _is_test(file: Path) -> bool:
    with suppress(OSError):
        return _JUNIT.search(file.read_text(encoding="utf-8", errors="replace")) is not None
    return False


def _of_maven(words: list[str], root: Path) -> JavaSuite:
    kept: list[str] = []
    wanted: list[Chosen] = []
    for word in words:
        name, _, value = word.partition("=")
        if name not in ("-Dtest", "-Dit.test") or "#" not in value or value.startswith("!"):
            kept.append(word)
            continue
        each = [part.partition("#") for part in value.split(",")]
        wanted += [(owner, method) for owner, _, methods in each for method in (methods or "*").split("+")]
        # The other tests of its classes are what the failing one is compared with.
        kept.append(f"{name}={','.join(dict.fromkeys(owner for owner, _, _ in each))}")
    return JavaSuite(root=root, words=tuple(kept), exact=tuple(words), wanted=tuple(wanted))


def _wider(words: list[str], options: Sequence[str]) -> tuple[list[str], tuple[Chosen, ...]]:
    """A command of JUnit's launcher with the classes of the methods that it names."""
    kept: list[str] = []
    wanted: list[Chosen] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        option, has_value, value = word.partition("=")
        if option not in options or not (has_value or waiting):
            kept.append(word)
            continue
        owner, _, method = (value if has_value else waiting.pop(0)).partition("#")
        wanted.append((owner, method.partition("(")[0]))
        kept += ["-c", owner]
    return kept, tuple(wanted)


def _of_file(file: Path, method: str, options: Sequence[str], root: Path) -> JavaSuite:
    owner = ".".join(each for each in (_package_of(file), file.stem) if each)
    nested, _, name = method.rpartition("::")
    wanted = ((f"{owner}{''.join(f'${each}' for each in nested.split('::') if each)}", name),) if method else ()
    module = next((each for each in file.parents if (each / "pom.xml").exists()), None)
    if module is None:
        return JavaSuite(root=root, file=file, wanted=wanted)
    top = module
    while (top.parent / "pom.xml").exists():
        top = top.parent
    maven = str(top / "mvnw") if (top / "mvnw").exists() else "mvn"
    parts = ["-pl", module.relative_to(top).as_posix(), "-am"] if module != top else []
    # Modules on the way have no test of this name.
    words = [maven, "-q", *parts, f"-Dtest={owner}", "-DfailIfNoTests=false", "-Dsurefire.failIfNoSpecifiedTests=false"]
    return JavaSuite(root=root, folder=top, words=(*words, *options, "test"), wanted=wanted)


def _package_of(file: Path) -> str:
    try:
        found = _PACKAGE.search(file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return ""
    return found[1] if found else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class JavaSuite:
    root: Path
    folder: Path | None = None
    """Where the command runs; None: in the workspace."""
    words: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    """The command as it was given, where `words` runs more tests."""
    file: Path | None = None
    """A file without a build tool: it is compiled here."""
    program: str = ""
    """What the user calls a program that runs no tests."""
    wanted: tuple[Chosen, ...] = ()

    async def run(self, runner: CommandRunner, *, budget: float) -> SuiteRun:
        root = self.root.resolve()
        javac = PACKAGE.program(runner.sessions.chosen)
        classes = await bridge_classes(runner.sessions.chosen)
        with tempfile.TemporaryDirectory(prefix="trysquare-") as name:
            folder = Path(name)
            words = list(self.exact if self.exact and budget <= 0 else self.words)
            if self.file is not None:
                built = await self._build(runner, javac, folder)
                if isinstance(built, SuiteRun):
                    return built
                words = built
            else:
                is_maven = Path(words[0]).name == "mvn"
                program = str((self.folder or root) / words[0]) if "/" in words[0] else words[0]
                require_program(program, "apt-get install maven" if is_maven else PACKAGE.install_command)
            report = folder / "report"
            command = [
                _java(javac), "--add-modules", "jdk.jdi", "-cp", classes, "Spectrum", str(root), str(report),
                f"{budget:g}", *words,
            ]  # fmt: skip
            ended = await runner.execute(command, self.folder or root, keeps=1_000_000)
            found = await run_in_thread(lambda: _read(report))
        ended = replace(ended, output=_PICKED_UP.sub("", _COLORS.sub("", ended.output)))
        run = _Reported(root, found, self.program).run(ended)
        if not run.tests:
            return self._without_tests(ended, root)
        return run if self.program else replace(run, tests=self._chosen(run.tests, found))

    def _chosen(self, tests: Sequence[TestRun], found: Sequence[JsonObject]) -> tuple[TestRun, ...]:
        """The tests, those that were asked for first; other tests that fail are left out."""
        if not self.wanted:
            return tuple(tests)
        reported = [each for each in found if each["kind"] == "test"]
        pairs = list(zip(tests, reported, strict=False))
        asked = [test for test, each in pairs if any(_is_asked(each, chosen) for chosen in self.wanted)]
        if not asked:
            known = list(dict.fromkeys(each.name for each in tests))
            wanted = ", ".join("#".join(each for each in chosen if each) for chosen in self.wanted)
            raise InvalidArguments(
                f"No test of the name `{wanted}` was run.",
                instruction=f"Name one of: {', '.join(closest_names(wanted, known, count=5) or known[:5])}.",
            )
        return (*asked, *(each for each in tests if each not in asked and not each.failed))

    def _without_tests(self, ended: Executed, root: Path) -> SuiteRun:
        """What the compiler refused, or an error: nothing was run."""
        refused = _COMPILER.search(ended.output)
        if refused is not None:
            rest = [each.strip() for each in ended.output[refused.end() :].strip().splitlines()[:4]]
            # The compiler's words on the symbol; the line itself is shown anyway.
            detail = [each for each in rest if re.match(r"\w+: ", each)]
            file = str((root / refused["file"]).resolve())
            return not_compiled(file, int(refused["at"] or refused["line"]), refused["text"].strip(), ended, detail)
        what = "threw no exception that was seen" if self.program else "ran no test of JUnit that could be watched"
        raise ToolError(
            f"The command ended with exit code {ended.exit_code} and {what}.",
            code=ErrorCode.EXECUTION_FAILED,
            instruction="Read `output`."
            if self.program
            else "Read `output`. Check the names of the tests; JUnit 5 and 4 are watched, in any JVM it starts.",
            fields={"output": ended.output[-1500:].strip()},
        )

    async def _build(self, runner: CommandRunner, javac: str, folder: Path) -> list[str] | SuiteRun:
        """Compile the file and what it needs, and return the command that runs its tests."""
        file = self.file or Path()
        sources = await run_in_thread(lambda: list(_sources(self.root)))
        roots = list(dict.fromkeys(str(each) for source in (file, *sources) if (each := _source_root(source))))
        jars, launcher = await run_in_thread(lambda: _libraries(self.root, file, needs_junit=not self.program))
        path = os.pathsep.join(jars) or "."
        words = [javac, "-g", "-nowarn", "-d", str(folder), "-cp", path, "-sourcepath", os.pathsep.join(roots)]
        built = await runner.execute([*words, str(file)], self.root.resolve())
        if built.exit_code != 0:
            return self._without_tests(built, self.root.resolve())
        owner = ".".join(each for each in (_package_of(file), file.stem) if each)
        command = [_java(javac), "-cp", os.pathsep.join([str(folder), *roots, *jars])]
        if self.program:
            return [*command, owner, *self.words]
        if launcher == _LAUNCHER:
            return [*command, "org.junit.platform.console.ConsoleLauncher", "-c", owner, "--details", "none"]
        return [*command, "org.junit.runner.JUnitCore", owner]


def _is_asked(test: JsonObject, chosen: Chosen) -> bool:
    owner, method = chosen
    known = str(test.get("class") or "")
    names = [known, known.replace("$", ".")]
    names += [each.rpartition(".")[2] for each in (known,)] + [known.partition("$")[0].rpartition(".")[2]]
    if not any(fnmatch.fnmatchcase(name, owner.removesuffix(".java")) for name in names):
        return False
    called = str(test.get("method") or "")
    return not method or fnmatch.fnmatchcase(called, method) or method in (test.get("display"), f"{called}()")


def _java(javac: str) -> str:
    """The JVM of the same JDK as its compiler."""
    beside = Path(javac).resolve().parent / "java"
    return str(beside) if beside.exists() else shutil.which("java") or "java"


def _sources(root: Path) -> Iterator[Path]:
    """The sources of the workspace."""
    count = 0
    for folder, folders, files in os.walk(root.resolve()):
        folders[:] = [each for each in folders if not each.startswith(".") and each not in _BUILT]
        for name in files:
            if name.endswith(".java"):
                count += 1
                yield Path(folder, name)
        if count > _MAX_SOURCES:
            return


def _source_root(file: Path) -> Path | None:
    """The directory that the package of a source begins in."""
    parts = [each for each in _package_of(file).split(".") if each]
    folder = file.parent
    for part in reversed(parts):
        if folder.name != part:
            return None
        folder = folder.parent
    return folder


def _libraries(root: Path, file: Path, *, needs_junit: bool) -> tuple[list[str], str]:
    """The libraries of a project without a build tool, and the class of JUnit that runs tests."""
    folders = [each for each in file.parents if each.is_relative_to(root.resolve())]
    own = [jar for folder in folders for name in (".", "lib", "libs") for jar in sorted((folder / name).glob("*.jar"))]
    given = [Path(each) for each in os.environ.get("CLASSPATH", "").split(os.pathsep) if each.endswith(".jar")]
    jars = [*own, *given]
    if not needs_junit:
        return [str(each) for each in jars], ""
    for launcher in (_LAUNCHER, _JUNIT_4):
        if any(_has(jar, launcher) for jar in jars):
            return [str(each) for each in jars], launcher
    if Path(_DEBIAN).exists():
        return [*(str(each) for each in jars), _DEBIAN], _LAUNCHER
    raise ToolError(
        "JUnit was not found: no jar in the project's lib directory or in CLASSPATH has its launcher.",
        code=ErrorCode.ADAPTER_NOT_FOUND,
        instruction="Put junit-platform-console-standalone.jar into lib/, or ask the user to install it: "
        "apt-get install junit5",
    )


def _has(jar: Path, name: str) -> bool:
    try:
        with zipfile.ZipFile(jar) as file:
            return name in file.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def _read(report: Path) -> list[JsonObject]:
    if not report.exists() or report.stat().st_size > _MAX_REPORT:
        return []
    return json_lines(report.read_text(encoding="utf-8", errors="replace"))


class _Reported:
    """What was seen in the machines that ran tests."""

    def __init__(self, root: Path, found: Sequence[JsonObject], program: str = "") -> None:
        self._root = str(root)
        self._program = program
        self._functions: dict[Line, str] = {}
        self._found = found
        self._sources = Sources()
        self._cases = Counter(_method(each) for each in found if each["kind"] == "test")

    def run(self, ended: Executed) -> SuiteRun:
        for each in (found for found in self._found if found["kind"] == "class"):
            names = as_object(each["functions"])
            self._functions.update({(str(each["file"]), int(line)): str(name) for line, name in names.items()})
        if self._program:
            return self._of_program(ended)
        tests = tuple(self._test(each) for each in self._found if each["kind"] == "test")
        uncounted = [each for each in tests if each.lines is None]
        notes: tuple[str, ...] = ()
        if any(each.failed for each in uncounted) and len(uncounted) < len(tests):
            notes = ("Its lines are not known: the time for the lines of tests was up before it ran (--budget).",)
        return SuiteRun(
            tests=tests, output=ended.output[-4000:], exit_code=ended.exit_code, functions=self._functions,
            not_run=len([each for each in uncounted if not each.failed]), notes=notes,
        )  # fmt: skip

    def _of_program(self, ended: Executed) -> SuiteRun:
        """A program without tests: the exception that ended it."""
        thrown = [each for each in self._found if each["kind"] == "uncaught"]
        if not thrown and ended.exit_code:
            return SuiteRun(tests=(), output=ended.output, exit_code=ended.exit_code)
        # One of another thread does not end it.
        last = next((each for each in reversed(thrown) if each["thread"] == "main"), thrown[-1] if thrown else None)
        test = TestRun(name=self._program)
        if last is not None:
            test = self._failed(replace(test, failed=True), [as_object(error) for error in as_list(last["errors"])])
        return SuiteRun(tests=(test,), output=ended.output[-4000:], exit_code=ended.exit_code)

    def _test(self, each: JsonObject) -> TestRun:
        run = TestRun(
            name=self._name(each), file=str(each.get("file") or ""), failed=bool(each["failed"]),
            lines=None if "lines" not in each else frozenset(self._lines(as_object(each["lines"]))),
        )  # fmt: skip
        if not run.failed:
            return run
        errors = [as_object(error) for error in as_list(each.get("errors"))]
        if not errors:
            return replace(run, error="The test failed without an exception.")
        caught = [as_object(thrown) for thrown in as_list(each.get("thrown"))]
        swallowed = dict.fromkeys(self._placed(thrown) for thrown in caught if thrown["caught"])
        run = replace(self._failed(run, errors), swallowed=tuple(swallowed))
        return run if run.frames else replace(run, frames=self._begin(each))

    def _failed(self, run: TestRun, errors: Sequence[JsonObject]) -> TestRun:
        first, *causes = errors
        # A library's exception around one of the user's code has no frame of its own there.
        place = next((error for error in errors if error["frames"]), first)
        error, *detail = _text(first).splitlines() or ["?"]
        detail += [f"caused by {self._placed(cause)}" for cause in causes]
        return replace(run, error=error, detail=tuple(line for line in detail if line.strip()), frames=_frames(place))

    def _begin(self, test: JsonObject) -> tuple[Frame, ...]:
        """Where a test begins: it failed outside the user's code, such as one that should have thrown."""
        file, name = str(test.get("file") or ""), _method(test)
        lines = [line for (known, line), function in self._functions.items() if (known, function) == (file, name)]
        return (Frame(file=file, line=min(lines), function=name),) if lines else ()

    def _name(self, test: JsonObject) -> str:
        """`CartTest.adds`, with the case of a test that runs with several."""
        method, display = _method(test), str(test.get("display") or "")
        return f"{method} {display}".strip() if self._cases[method] > 1 else method or display

    def _lines(self, found: JsonObject) -> Iterable[Line]:
        for file, numbers in found.items():
            for number in as_list(numbers):
                line = int(str(number))
                if not _HEAD.match(self._sources.line(file, line)):
                    yield file, line

    def _placed(self, error: JsonObject) -> str:
        """An exception in one line, with its place."""
        frames = _frames(error)
        text = _text(error).partition("\n")[0]
        return f"{text} at {relative(f'{frames[0].file}:{frames[0].line}', self._root)}" if frames else text


def _method(test: JsonObject) -> str:
    owner = str(test.get("class") or "").rpartition(".")[2].replace("$", ".")
    return ".".join(each for each in (owner, str(test.get("method") or "")) if each)


def _text(error: JsonObject) -> str:
    kind = str(error["type"]).rpartition(".")[2].replace("$", ".")
    message = str(error.get("message") or "")
    return f"{kind}: {message}" if message else kind


def _frames(error: JsonObject) -> tuple[Frame, ...]:
    return tuple(
        Frame(
            file=str(each["file"]), line=int(each["line"]), function=str(each["function"]),
            values={name: _short(str(value)) for name, value in as_object(each["values"]).items()},
        )
        for each in (as_object(part) for part in as_list(error["frames"]))
    )  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 1]}…"
