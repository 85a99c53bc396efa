"""Rules over artifacts: every kind of scanner, the examples of rules, and scanners that would not end."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.bots import load_bot
from trysquare.bots.documents.story import StoryGraph
from trysquare.bots.scanners import runner as scanning
from trysquare.bots.scanners.base import (
    CommandScanner,
    Examples,
    PythonScanner,
    RegexScanner,
    Rule,
    Scanner,
    SchemaScanner,
    Severity,
    Target,
)
from trysquare.bots.scanners.kinds import worst_steps
from trysquare.bots.scanners.runner import Artifacts, ScanCache, ScanReport, Source, matches, scan, self_test
from trysquare.files.root import DirectoryRoot

STORY_BOT = Path(__file__).parents[2] / "examples" / "bots" / "story_bot"
GRAPH_SOURCE = Source(path="graph.json", type=StoryGraph())
GRAPH = """{
  "epics": [
    {
      "name": "Plan",
      "stories": [
        {"name": "Cook saves a recipe", "users": ["Cook", "User"]},
        {
          "name": "Cook manages recipes",
          "acceptance_criteria": [{"when": "x", "then": "y"}]
        }
      ]
    }
  ],
  "increments": [{"name": "MVP", "stories": []}]
}
"""


def rule(
    scanner: Scanner, *, do: tuple[Any, ...] = (), dont: tuple[Any, ...] = (), severity: Severity = "error"
) -> Rule:
    return Rule(
        name="a_rule",
        file="rules/a_rule.json",
        description="d",
        scanner=scanner,
        severity=severity,
        do=Examples(examples=do),
        dont=Examples(examples=dont),
    )


def target(kind: str, field: str | None = None) -> Target:
    return Target(kind=kind, field=field)


def regex(pattern: str, on: Target, **more: Any) -> RegexScanner:
    return RegexScanner(pattern=pattern, target=on, message="m", **more)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[DirectoryRoot]:
    (tmp_path / "graph.json").write_text(GRAPH, encoding="utf-8")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("ok = 1\nprint(ok)  # TODO\n", encoding="utf-8")
    (tmp_path / "notes.md").write_text("TODO\n", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"\xff\xfe\x00")
    with DirectoryRoot(tmp_path) as folder:
        yield folder


def scanned(folder: DirectoryRoot, *rules: Rule, **more: Any) -> ScanReport:
    return scan(rules, Artifacts(folder=folder, documents=(GRAPH_SOURCE,), **more.pop("artifacts", {})), **more)


def places(report: ScanReport) -> list[tuple[str, int, str]]:
    return [(each.file, each.line, each.text) for each in report.violations]


def test_a_forbidden_pattern_is_reported_with_file_line_text_and_example(project: DirectoryRoot) -> None:
    report = scanned(project, rule(regex(r"\bmanages\b", target("story", "name")), do=("Cook renames a recipe",)))
    (found,) = report.violations
    assert found.to_json() == {
        "rule": "a_rule",
        "severity": "error",
        "file": "graph.json",
        "line": 8,
        "message": "m",
        "text": "Cook manages recipes",
        "where": "Plan > Cook manages recipes",
        "example": "Cook renames a recipe",
    }
    assert not report.clean


def test_each_item_of_a_list_field_is_looked_at(project: DirectoryRoot) -> None:
    report = scanned(project, rule(regex("^User$", target("story", "users"))))
    assert places(report) == [("graph.json", 6, "User")]


def test_a_required_pattern_is_missed_where_it_does_not_match(project: DirectoryRoot) -> None:
    report = scanned(project, rule(regex("saves", target("story", "name"), match="require"), severity="warning"))
    assert [each.text for each in report.violations] == ["Cook manages recipes"]
    assert report.clean


def test_files_are_searched_line_by_line_where_the_globs_say(project: DirectoryRoot) -> None:
    code = rule(regex("TODO", target("file"), files=("src/**/*.py",)))
    everything = rule(regex("todo", target("file"), ignore_case=True))
    assert places(scanned(project, code)) == [("src/a.py", 2, "print(ok) # TODO")]
    assert [each.file for each in scanned(project, everything).violations] == ["notes.md", "src/a.py"]
    scoped = scanned(project, everything, artifacts={"files": ("notes.md",)})
    assert [each.file for each in scoped.violations] == ["notes.md"]


def test_a_schema_is_held_against_each_node(project: DirectoryRoot) -> None:
    schema = {"type": "object", "required": ["users"]}
    report = scanned(project, rule(SchemaScanner(schema=schema, target=target("story"), message="Who takes part?")))
    (found,) = report.violations
    assert found.line == 7
    assert found.message.startswith("Who takes part? ('users' ")


def test_a_python_scanner_runs_with_its_options(project: DirectoryRoot) -> None:
    scanner = PythonScanner(
        callable="tests.bots.sample_scanners:long_lines",
        target=target("file"),
        message="too long",
        options={"longest": 10},
        files=("*.py",),
    )
    (found,) = scanned(project, rule(scanner)).violations
    assert (found.file, found.line, found.message) == ("src/a.py", 2, "too long")


@pytest.mark.parametrize(
    ("name", "seconds", "said"),
    [
        ("failing", 60, "RuntimeError: this scanner is broken"),
        ("no_such_name", 60, "has no attribute 'no_such_name'"),
        ("endless", 1, "timed out after 1 seconds"),
    ],
)
def test_a_python_scanner_that_fails_is_a_problem_and_not_clean(
    project: DirectoryRoot, name: str, seconds: float, said: str
) -> None:
    scanner = PythonScanner(callable=f"tests.bots.sample_scanners:{name}", target=target("story"), message="m")
    report = scanned(project, rule(scanner), seconds=seconds)
    (problem,) = report.problems
    assert said in problem.message
    assert not report.clean


CHECKER = """import json, sys
print(PRINTED)
sys.exit(1)
"""


@pytest.mark.parametrize(
    "printed",
    [
        "'src/a.py:2: a print'",
        "'src/a.py:2:5: a print'",
        "json.dumps([{'filename': sys.argv[1], 'location': {'row': 2}, 'message': 'a print'}])",
        "json.dumps({'file': 'src/a.py', 'line': 2, 'message': 'a print'})",
    ],
)
def test_a_command_says_what_is_wrong_in_lines_or_json(project: DirectoryRoot, printed: str) -> None:
    code = CHECKER.replace("PRINTED", printed)
    scanner = CommandScanner(
        argv=(sys.executable, "-I", "-c", code, "{files}"), target=target("file"), message="m", files=("*.py",)
    )
    (found,) = scanned(project, rule(scanner)).violations
    assert (found.file, found.line, found.message) == ("src/a.py", 2, "a print")


def test_a_command_is_not_given_to_a_shell(project: DirectoryRoot, tmp_path: Path) -> None:
    (tmp_path / "$(touch owned).py").write_text("x", encoding="utf-8")
    code = "import sys; [print(f'{name}:1: {name}') for name in sys.argv[1:]]"
    scanner = CommandScanner(
        argv=(sys.executable, "-I", "-c", code, "{files}"), target=target("file"), message="m", files=("*.py",)
    )
    assert "$(touch owned).py" in [each.message for each in scanned(project, rule(scanner)).violations]
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("argv", "seconds", "said"),
    [
        (("no-such-program-anywhere", "{files}"), 60, "cannot be started"),
        ((sys.executable, "-c", "import sys; sys.exit('out of order')"), 60, "ended with 1: out of order"),
        ((sys.executable, "-c", "import threading; threading.Event().wait()"), 1, "timed out after 1 seconds"),
    ],
)
def test_a_command_that_fails_is_a_problem(
    project: DirectoryRoot, argv: tuple[str, ...], seconds: float, said: str
) -> None:
    scanner = CommandScanner(argv=argv, target=target("file"), message="m")
    (problem,) = scanned(project, rule(scanner), seconds=seconds).problems
    assert said in problem.message


@pytest.mark.parametrize("pattern", [r"^(a+)+$", r"(a|a)*b", r"(?:a?){40}a{40}$", r"(\w+\s?)*!", r"(x+x+)+y"])
def test_a_pattern_that_would_not_end_is_ended(project: DirectoryRoot, tmp_path: Path, pattern: str) -> None:
    (tmp_path / "long.txt").write_text("x" * 40 + "a" * 40 + "\n" + "a" * 60 + "?", encoding="utf-8")
    report = scanned(project, rule(regex(pattern, target("file"), files=("long.txt",))), seconds=1)
    assert [each.message for each in report.problems] in (
        [],
        ["The rule could not be applied: the pattern timed out after 1 seconds."],
    )


def test_a_schema_with_a_pattern_that_would_not_end_is_ended(project: DirectoryRoot, tmp_path: Path) -> None:
    graph = {"epics": [{"name": "a" * 60 + "!"}]}
    (tmp_path / "graph.json").write_text(json.dumps(graph), encoding="utf-8")
    schema = {"properties": {"name": {"pattern": "^(a+)+$"}}}
    report = scanned(project, rule(SchemaScanner(schema=schema, target=target("epic"), message="m")), seconds=1)
    assert "timed out after 1 seconds" in report.problems[0].message


@pytest.mark.parametrize("pattern", [r"(a+)+", r"(ab|cd)*", r"(a?)*", r"(.)\1*", r"(?:a{1,9})+"])
def test_nested_repetitions_have_no_bound(pattern: str) -> None:
    assert worst_steps(pattern, 10) == float("inf")


@pytest.mark.parametrize(
    ("pattern", "steps"), [("abc", 11), (r"\ba+\b", 121), ("ab|cd", 22), ("a*b*", 1331), ("a?b", 22)]
)
def test_plain_patterns_are_bounded_by_a_power_of_the_length(pattern: str, steps: int) -> None:
    assert worst_steps(pattern, 10) == steps


def test_a_graph_that_breaks_its_schema_is_a_violation_with_its_line(project: DirectoryRoot, tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text(GRAPH.replace('"stories": []', '"stories": ["Cook flies"]'), encoding="utf-8")
    (found,) = scanned(project).violations
    assert (found.rule, found.line) == ("story_graph", 14)
    assert "`Cook flies`" in found.message


def test_a_graph_that_is_no_json_is_a_violation_with_its_line(project: DirectoryRoot, tmp_path: Path) -> None:
    (tmp_path / "graph.json").write_text('{\n "epics": [}\n', encoding="utf-8")
    (found,) = scanned(project).violations
    assert (found.rule, found.line) == ("story_graph", 2)


def test_a_document_that_is_not_there_is_reported_and_never_clean(tmp_path: Path) -> None:
    with DirectoryRoot(tmp_path) as folder:
        report = scanned(folder, rule(regex("x", target("story", "name"))))
    assert [(each.rule, each.file) for each in report.violations] == [("missing_document", "graph.json")]
    assert (report.clean, report.documents) == (False, (("graph.json", "missing"),))


def test_a_document_that_need_not_exist_is_absent(tmp_path: Path) -> None:
    source = Source(path="graph.json", type=StoryGraph(), required=False)
    with DirectoryRoot(tmp_path) as folder:
        report = scan([], Artifacts(folder=folder, documents=(source,)))
    assert (report.violations, report.clean, report.documents) == ((), True, (("graph.json", "absent"),))


def test_results_are_kept_until_the_rule_or_an_artifact_changes(
    project: DirectoryRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []
    real = scanning.run_scanner

    def counted(*arguments: Any, **more: Any) -> Any:
        runs.append(1)
        return real(*arguments, **more)

    monkeypatch.setattr(scanning, "run_scanner", counted)
    cache = ScanCache()
    first = scanned(project, rule(regex("manages", target("story", "name"))), cache=cache)
    again = scanned(project, rule(regex("manages", target("story", "name"))), cache=cache)
    assert (again, len(runs)) == (first, 1)
    scanned(project, rule(regex("saves", target("story", "name"))), cache=cache)
    assert len(runs) == 2
    (tmp_path / "graph.json").write_text(GRAPH.replace("manages", "renames"), encoding="utf-8")
    assert scanned(project, rule(regex("manages", target("story", "name"))), cache=cache).clean
    assert len(runs) == 3


def test_the_rules_of_the_story_bot_do_what_their_examples_say() -> None:
    definition = load_bot(STORY_BOT)
    rules = [*definition.rules, *(each for behavior in definition.behaviors for each in behavior.rules)]
    assert [str(problem) for each in rules for problem in self_test(each)] == []


def test_a_rule_that_misses_its_own_examples_is_named() -> None:
    wrong = rule(regex("manages", target("story", "name")), do=("Cook manages a recipe",), dont=("Cook handles it",))
    missed, reported = (str(each) for each in self_test(wrong))
    assert missed.startswith("rules/a_rule.json: ")
    assert missed.endswith("don't example: Cook handles it")
    assert reported.startswith("rules/a_rule.json: ")
    assert reported.endswith(" do example: Cook manages a recipe")


def test_python_scanners_and_commands_are_tested_by_their_examples_too() -> None:
    shouting = PythonScanner(callable="tests.bots.sample_scanners:shouting", target=target("story"), message="m")
    assert self_test(rule(shouting, do=({"name": "quiet"},), dont=({"name": "LOUD"},))) == []
    code = "import sys; [print(f'{n}:1: x') for n in sys.argv[1:] if 'bad' in open(n).read()]"
    command = CommandScanner(
        argv=(sys.executable, "-I", "-c", code, "{files}"), target=target("file"), message="m", files=("*.py",)
    )
    assert self_test(rule(command, do=("good",), dont=("bad",))) == []
    assert len(self_test(rule(command, do=("bad",), dont=("good",)))) == 2


def test_a_rule_that_cannot_be_run_says_so_in_its_test() -> None:
    missing = PythonScanner(callable="json:nothing", target=target("story"), message="m")
    (problem,) = self_test(rule(missing, dont=({"name": "x"},)))
    assert "The rule cannot be tested" in problem.message


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/deep/er/a.py", True),
        ("src/**", "src/deep/a.txt", True),
        ("test_?.py", "tests/test_a.py", True),
        ("*.py", "a.pyc", False),
    ],
)
def test_globs(glob: str, path: str, fits: bool) -> None:
    assert matches(path, (glob,)) is fits


@given(st.text(alphabet="ab*?/.[", max_size=10), st.text(alphabet="ab/.", max_size=10))
def test_no_glob_is_an_error(glob: str, path: str) -> None:
    assert matches(path, (glob,)) in (True, False)
