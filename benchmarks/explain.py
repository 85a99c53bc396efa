"""`python -m benchmarks.explain`: mutants in packages with tests of their own, and whether the wrong line is named."""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.mutants import Mutant, choose, write
from benchmarks.peers.known import ROOT
from trysquare.debug.explain.explain import Explained, Explanation, explain_failure, localize_failures
from trysquare.debug.explain.localization import BUDGET
from trysquare.debug.recorder.forks import BUSY
from trysquare.debug.sessions.launch import read_target
from trysquare.debug.tools.recording import explain_result
from trysquare.processes.supervisor import ProcessSupervisor, supervise

TUNING = ("inflection", "more-itertools", "sqlparse", "tabulate", "toolz", "xmltodict")
"""The packages that the ranking was fixed on."""
MEASURING = (
    "boltons", "cachetools", "intervaltree", "isodate", "mistune", "schema", "tinydb", "voluptuous", "webcolors"
)  # fmt: skip
"""The packages that are measured; none of them was looked at while the ranking was made."""
SEED = 20261118
PINS = ROOT / "constraints" / "explain.txt"
STORE = ROOT / ".data" / "explain"
PAGE = ROOT / "docs" / "benchmarks-explain.md"
_NO_SOURCE = re.compile(
    r"(^|/)(tests?|docs?|examples?|benchmarks?|tools|build|\.[^/]+)/|(^|/)(setup|conftest|noxfile)\.py$"
)
_NO_TEST = re.compile(r"(^|/)(test_[^/]*|[^/]*_tests?|test)\.py$")
_PYTEST = ("-q", "-n0", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", "--tb=no", "-rfE")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
METHODS = {
    "ours": "Trysquare",
    "untried": "the same, no changes tried",
    "ochiai": "Ochiai alone",
    "traceback": "pytest's traceback",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    file: str
    line: int
    last_line: int = 0


@dataclass(kw_only=True, slots=True)
class Row:
    """What came of one mutant."""

    package: str
    mutant: Mutant
    test: str
    places: dict[str, list[Place]] = field(default_factory=dict[str, list[Place]])
    ranks: dict[str, tuple[int | None, int | None]] = field(default_factory=dict[str, tuple[int | None, int | None]])
    """By method: the rank of the wrong line, and of its function."""
    found: dict[str, Any] = field(default_factory=dict[str, Any])
    proved: bool = False
    """Whether the wrong line is named with a change that makes the test pass and breaks no other."""
    false: tuple[str, ...] = ()
    size: int = 0
    seconds: float = 0.0
    slow_downs: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """By interpreter: how many times the processor time of the command, and of the test alone, recording takes."""

    def line_rank(self, method: str) -> int | None:
        return self.ranks[method][0]

    def function_rank(self, method: str) -> int | None:
        return self.ranks[method][1]

    def rank(self) -> None:
        """Find the ranks while the program is there."""
        self.ranks = {method: (self._line_rank(method), self._function_rank(method)) for method in METHODS}

    def _line_rank(self, method: str) -> int | None:
        for rank, place in enumerate(self.places[method], start=1):
            if place.file == str(self.mutant.file) and place.line == self.mutant.line:
                return rank
        return None

    def _function_rank(self, method: str) -> int | None:
        names: list[tuple[str, str]] = []
        for place in self.places[method]:
            name = place.file, _function_at(place.file, place.line)
            if name not in names:
                names.append(name)
        wanted = str(self.mutant.file), _function_at(str(self.mutant.file), self.mutant.line)
        return names.index(wanted) + 1 if wanted in names else None


def main() -> int:
    arguments = _parser().parse_args()
    packages = arguments.packages or (TUNING if arguments.tuning else MEASURING)
    download()
    rows: list[Row] = []
    table = ""
    # Each package in a process of its own: where the package is, is in the environment.
    with ProcessPoolExecutor(arguments.jobs, max_tasks_per_child=1, mp_context=get_context("spawn")) as pool:
        for measured in as_completed([pool.submit(_measure_package, each, arguments) for each in packages]):
            rows += measured.result()
            table = to_markdown(rows)
            if arguments.write:
                # After each package, so that a run that is ended leaves what it measured.
                PAGE.write_text(_page(rows, table, arguments), encoding="utf-8")
    print(table)
    if arguments.write:
        print(f"Written to {PAGE.relative_to(ROOT)}.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.explain", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="default: all that are measured")
    parser.add_argument("--tuning", action="store_true", help="the packages for tuning instead")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=8, help="mutants of each package (default: %(default)s)")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds for each (default: %(default)g)")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that runs the tests")
    parser.add_argument("--details", type=Path, help="write what came of each mutant to this file as JSON lines")
    parser.add_argument("--also", action="append", default=[], help="another interpreter to measure the recording with")
    parser.add_argument("--jobs", type=int, default=1, help="packages at a time (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="write the page of the documentation")
    return parser


def download() -> None:
    """Fetch the pinned source distributions, once."""
    if (STORE / "done").exists() and (STORE / "done").read_text() == PINS.read_text():
        return
    shutil.rmtree(STORE, ignore_errors=True)
    STORE.mkdir(parents=True)
    # What the packages are built with may come as wheels: only of the packages themselves is the source wanted.
    sources = ",".join([*TUNING, *MEASURING])
    words = ["download", "--quiet", "--no-deps", "--no-binary", sources, "--require-hashes", "-r", str(PINS)]
    subprocess.run([sys.executable, "-m", "pip", *words, "--dest", str(STORE)], check=True)
    (STORE / "done").write_text(PINS.read_text())


def _measure_package(package: str, arguments: argparse.Namespace) -> list[Row]:
    return asyncio.run(_measure(package, arguments))


async def _measure(package: str, arguments: argparse.Namespace) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        root = _unpack(package, folder)
        os.environ["PYTHONPATH"] = str(root / "src" if (root / "src").is_dir() else root)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        begun = time.perf_counter()
        known = set(_failing(root, arguments.python, first_only=False))
        limit = 10 + 4 * (time.perf_counter() - begun)
        for mutant in choose(_sources(root), f"{arguments.seed} {package}", arguments.count * 6):
            write(mutant)
            failing = [each for each in _failing(root, arguments.python, seconds=limit) if each not in known]
            if failing and not _is_broken_import(failing[0]):
                row = await _explained(package, mutant, failing[0], root, arguments)
                for python in (arguments.python, *arguments.also):
                    slow_down = _slow_down(root, failing[0], python)
                    if slow_down is not None:
                        row.slow_downs[python] = slow_down
                print(_line(row, root), flush=True)
                if arguments.details:
                    with arguments.details.open("a") as out:
                        print(json.dumps(_details(row, root), default=str), file=out)
                rows.append(row)
            write(Mutant(file=mutant.file, line=mutant.line, operator="", old="", new=mutant.old, function=""))
            if len(rows) == arguments.count:
                break
    return rows


_TIMER = """
import time, sys, pytest

@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    begun = time.process_time()
    yield
    print(f"took {time.process_time() - begun:.6f}", file=sys.__stderr__)
"""
"""A plugin of pytest that measures the test alone: without pytest's start, the fixtures and the report."""


def _slow_down(root: Path, test: str, python: str) -> tuple[float, float] | None:
    """How many times the processor time of a plain run recording takes: of the command, and of the test alone."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_timer.py").write_text(_TIMER, encoding="utf-8")
        path = os.pathsep.join([os.environ["PYTHONPATH"], folder])
        recorder = [str(ROOT / "src" / "trysquare" / "debug" / "recorder"), str(Path(folder) / "report.json")]
        watch = json.dumps({"kind": "pytest", "roots": [str(root)], "watch": "failure", "run_before": True})
        words = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "test_timer", test]
        commands: list[float] = []
        alone: list[float] = []
        for command in (["-m", "pytest", *words], [*recorder, watch, *words]):
            begun = _cpu_of_children()
            environment = {**os.environ, "PYTHONPATH": path}
            run = subprocess.run(
                [python, *command], cwd=root, env=environment, capture_output=True, text=True, check=False
            )
            commands.append(_cpu_of_children() - begun)
            # The recorded run is the last: one that only tells where the test fails is before it.
            alone += [float(each) for each in re.findall(r"^took (\S+)$", run.stderr, re.MULTILINE)[-1:]]
    if len(alone) != len(commands):
        return None
    return commands[1] / commands[0], alone[1] / max(alone[0], 0.0001)


def _cpu_of_children() -> float:
    used = os.times()
    return used.children_user + used.children_system


def _unpack(package: str, where: str) -> Path:
    """Unpack a package; its directory without links, as the recorder names files."""
    folder = Path(where).resolve()
    name = package.replace("-", "_")
    [archive] = [each for each in STORE.glob("*.tar.gz") if each.name.lower().startswith(f"{name}-")]
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    [root] = [each for each in folder.iterdir() if each.is_dir()]
    return root


def _sources(root: Path) -> list[Path]:
    files = [each for each in root.rglob("*.py") if each.stat().st_size < 300_000]
    names = {each: each.relative_to(root).as_posix() for each in files}
    return [each for each, name in names.items() if not _NO_SOURCE.search(name) and not _NO_TEST.search(name)]


def _failing(root: Path, python: str, *, first_only: bool = True, seconds: float = 300) -> list[str]:
    """The tests that fail, by their node ids."""
    words = [python, "-m", "pytest", *_PYTEST, *(["-x"] if first_only else [])]
    try:
        run = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return []
    return _FAILED.findall(run.stdout)


def _is_broken_import(test: str) -> bool:
    """Whether the change broke the collection of the tests: the traceback says it all."""
    return "::" not in test


async def _explained(package: str, mutant: Mutant, test: str, root: Path, arguments: argparse.Namespace) -> Row:
    row = Row(package=package, mutant=mutant, test=test)
    begun = time.perf_counter()
    async with supervise() as supervisor:
        explained = await _explain(test, root, supervisor, arguments)
    row.seconds = time.perf_counter() - begun
    row.places = {method: [] for method in METHODS}
    row.rank()
    if not explained.failures:
        return row
    explanation = explained.failures[0][1]
    found = {} if explanation.localization is None else explanation.localization.found
    row.places = {
        "ours": [Place(file=each.file, line=each.line) for each in explanation.suspects],
        "untried": [Place(file=each["file"], line=each["line"]) for each in found.get("before_changes", [])],
        "ochiai": [Place(file=each["file"], line=each["line"]) for each in found.get("by_spectrum", [])],
        "traceback": _traceback(explanation, root),
    }
    row.proved = any(
        each.proof is not None
        and not each.proof["breaks"]
        and each.line == mutant.line
        and each.file == str(mutant.file)
        for each in explanation.suspects
    )
    row.size = len(str(explain_result(explained, root, test).value).encode())
    row.false = tuple(_false_statements(explanation, root))
    row.found = found
    row.rank()
    return row


async def _explain(test: str, root: Path, supervisor: ProcessSupervisor, arguments: argparse.Namespace) -> Explained:
    target = read_target(["pytest", test], root, runtime=arguments.python)
    # Processor time is the same whatever else the machine does; what the clock says is not.
    explained = await explain_failure(target, root, supervisor, timeout=60 * BUSY)
    return await localize_failures(explained, target, root, supervisor, budget=arguments.budget, is_processor_time=True)


def _traceback(explanation: Explanation, root: Path) -> list[Place]:
    frames = () if explanation.head is None else explanation.head.frames
    own = [each for each in reversed(frames) if each.is_users and Path(each.file).is_relative_to(root)]
    names = [(each, Path(each.file).relative_to(root).as_posix()) for each in own]
    return [Place(file=each.file, line=each.line) for each, name in names if not _NO_SOURCE.search(name)]


def _false_statements(explanation: Explanation, root: Path) -> Iterable[str]:
    """What the answer says and the files deny: a line that is not there, or a claim on a change without a count."""
    for each in explanation.suspects:
        lines = Path(each.file).read_text(encoding="utf-8").splitlines()
        if each.line > len(lines) or lines[each.line - 1].strip() != each.code:
            yield f"{each.location} is not `{each.code}`"
        if _function_at(each.file, each.line) != each.function.replace("<module>", ""):
            yield f"{each.location} is not in {each.function}"


def _function_at(file: str, line: int) -> str:
    """The qualified name of the function or class around a line."""
    node: Any = ast.parse(Path(file).read_text(encoding="utf-8"))
    name = ""
    while node is not None:
        inner = None
        for each in ast.walk(node):
            if each is node or not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if each.body[0].lineno <= line <= (each.end_lineno or 0) and (inner is None or each.lineno < inner.lineno):
                inner = each
        if inner is not None:
            name = f"{name}.{inner.name}".lstrip(".")
        node = inner
    return name


def _line(row: Row, root: Path) -> str:
    ranks = " ".join(
        f"{method} {row.line_rank(method) or '-'}/{row.function_rank(method) or '-'}" for method in METHODS
    )
    where = f"{row.mutant.file.relative_to(root)}:{row.mutant.line}"
    proved = "proved" if row.proved else ""
    cost = f"{row.seconds:.1f} s {row.size} B"
    return f"{row.package} {row.mutant.operator} {where} {ranks} {proved} {cost} {row.false or ''}"


def _details(row: Row, root: Path) -> dict[str, Any]:
    return {
        "package": row.package, "file": str(row.mutant.file.relative_to(root)), "line": row.mutant.line,
        "operator": row.mutant.operator, "old": row.mutant.old.strip(), "new": row.mutant.new.strip(), "test": row.test,
        "ranks": {method: [row.line_rank(method), row.function_rank(method)] for method in METHODS},
        "seconds": row.seconds, "size": row.size, "slow_downs": row.slow_downs, "false": row.false, "found": row.found,
        "proved": row.proved,
    }  # fmt: skip


def to_markdown(rows: list[Row]) -> str:
    """The methods beside each other, in per cent of the mutants."""
    head = "| | line in 1 | 3 | 5 | function in 1 | 3 |\n|---|---|---|---|---|---|"
    lines = [head]
    for method, title in METHODS.items():
        ranks = [(row.line_rank(method), row.function_rank(method)) for row in rows]
        cells = [sum(line is not None and line <= most for line, _ in ranks) for most in (1, 3, 5)]
        cells += [sum(function is not None and function <= most for _, function in ranks) for most in (1, 3)]
        lines.append(f"| {title} | " + " | ".join(f"{100 * cell / max(len(rows), 1):.0f} %" for cell in cells) + " |")
    if rows:
        proved = 100 * sum(row.proved for row in rows) / len(rows)
        sizes, seconds = [row.size for row in rows], [row.seconds for row in rows]
        lines += [
            "",
            f"{len(rows)} mutants. Proved by a change of the wrong line that breaks no passing test: {proved:.0f} %. "
            f"False statements: {sum(len(row.false) for row in rows)}. "
            f"Median of an answer: {statistics.median(sizes):.0f} bytes in {statistics.median(seconds):.1f} s, "
            f"at most {max(sizes)} bytes in {max(seconds):.1f} s.",
        ]
        lines += [
            "",
            "What recording costs:",
            "",
            *(_recording_line(python, rows) for python in dict.fromkeys(p for row in rows for p in row.slow_downs)),
        ]
    return "\n".join(lines)


def _recording_line(python: str, rows: list[Row]) -> str:
    """What recording cost with one interpreter."""
    measured = [row.slow_downs[python] for row in rows if python in row.slow_downs]
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.strip()
    whole, alone = ([each[index] for each in measured] for index in (0, 1))
    return (
        f"- {version}, {len(measured)} of the failing tests: {statistics.median(whole):.2f} times the command, at most "
        f"{max(whole):.1f}; {statistics.median(alone):.1f} times the test alone, at most {max(alone):.1f}"
    )


def _page(rows: list[Row], table: str, arguments: argparse.Namespace) -> str:
    packages = sorted({row.package for row in rows})
    pins = {line.partition("==")[0]: line.split()[0] for line in PINS.read_text().splitlines() if "==" in line}
    python = subprocess.run([arguments.python, "-V"], capture_output=True, text=True, check=True).stdout.strip()
    return f"""# Failures explained

`make bench-explain ARGS=--write` changes one line at a time in packages from PyPI, by seed, keeps the changes that one
of the package's own tests catches, explains the first test that fails, and writes this page. A line counts as named in
the first n if it is the changed line itself and among the first n suspects; a function, if it is among the first n
functions of the suspects. Of lines that a method holds for equally suspect, the first in the file comes first.

Seed {arguments.seed}, {arguments.count} mutants of each package at most, {python}, {arguments.budget:g} s of processor
time for each: the budget of `explain` is of time on the clock, and of processor time here, so that what other programs
do meanwhile changes nothing. {arguments.jobs} packages at a time.
Measured: {", ".join(f"{pins[each]}" for each in packages)}. The ranking was fixed on {", ".join(TUNING)}, which are not
measured here.

{table}

The changes: another comparison, arithmetic or boolean operator, another constant, bound or index, swapped or missing
arguments, swapped branches, `return None`, a statement in whose place `pass` stands. "The same, no changes tried" is
the order before changes were tried: `explain` tries changes of similar kinds, which helps most where the mistake is
small.
Ochiai alone ranks the lines that ran by the same runs of tests; pytest's traceback is its lines in the package, the
innermost first. A statement is false if the named line or function is not what the file has there.

What recording costs is the processor time of `pytest FILE::TEST` recorded, divided by that of the same command without
the recorder: for the command as it is given, with the start of Python and pytest, and for the test function alone,
which often takes less than a millisecond. The limits set for the recorder, 10 times and, on Python 3.12 and later, 3
times, are of the command, at the median.

| package | mutants | first | in 3 | in 5 | function first |
|---|---|---|---|---|---|
{chr(10).join(_package_line(each, [row for row in rows if row.package == each]) for each in packages)}
"""


def _package_line(package: str, rows: list[Row]) -> str:
    lines = [row.line_rank("ours") or 99 for row in rows]
    functions = [row.function_rank("ours") or 99 for row in rows]
    counts = [sum(rank <= most for rank in lines) for most in (1, 3, 5)]
    return f"| {package} | {len(rows)} | {counts[0]} | {counts[1]} | {counts[2]} | {sum(r == 1 for r in functions)} |"


if __name__ == "__main__":
    sys.exit(main())
