"""Explanations name no place that they cannot stand behind: asked of programs that are easily told wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.debug.truth_cases import CASES, CHILD, PROGRAMS
from trysquare import call_tool
from trysquare.debug import DebugConfig, Explained, explain_failure, open_debugger, read_target
from trysquare.debug.explain.explain import Explanation
from trysquare.debug.explain.failures import Site
from trysquare.debug.recorder.hooks import LIBRARY, STANDARD, USER
from trysquare.processes.supervisor import supervise

Telling: TypeAlias = Callable[[str], Awaitable["Told"]]
ENV = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""The plugins of this project's own environment are not what is tested."""


async def explained(folder: Path, target: str) -> Explained:
    async with supervise() as supervisor:
        wanted = read_target(target, folder, runtime=sys.executable)
        return await explain_failure(wanted, folder, supervisor, env=ENV)


class Told:
    """The explanation of one program, and the numbers of its marked lines."""

    def __init__(self, file: Path, explanation: Explanation) -> None:
        self._lines = file.read_text(encoding="utf-8").splitlines()
        self.file = str(file)
        self.explanation = explanation
        self.text = explanation.to_text(str(file.parent))

    def place(self, mark: str) -> str:
        [line] = [number for number, line in enumerate(self._lines, start=1) if line.endswith(f"# {mark}")]
        return f"{self.file}:{line}"

    @property
    def places(self) -> list[str]:
        """The lines that it says to look at."""
        return [f"{each.file}:{each.line}" for each in self.explanation.locations]


_TOLD: dict[str, Told] = {}


@pytest.fixture(name="told")
def told_fixture(tmp_path_factory: pytest.TempPathFactory) -> Telling:
    """Explains a program by its name; each is run once, however many tests ask for it."""

    async def told(name: str) -> Told:
        if name not in _TOLD:
            _TOLD[name] = await _told(name, tmp_path_factory.mktemp(name))
        return _TOLD[name]

    return told


async def _told(name: str, folder: Path) -> Told:
    is_test = name in CASES
    file = folder / (f"test_{name}.py" if is_test else f"{name}.py")
    file.write_text(CASES[name] if is_test else PROGRAMS[name], encoding="utf-8")
    (folder / "child.py").write_text(CHILD, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    found = await explained(folder, f"pytest {file.name}" if is_test else file.name)
    assert found.failures, found
    return Told(file, found.failures[0][1])


@pytest.mark.parametrize("name", [name for name in [*CASES, *PROGRAMS] if "# RAISES" in {**CASES, **PROGRAMS}[name]])
async def test_the_error_stands_with_the_line_of_its_own_exception(name: str, told: Telling) -> None:
    it = await told(name)
    head = it.explanation.head
    assert head is not None
    assert head.user is not None, it.text
    assert head.user.location == it.place("RAISES"), it.text
    assert it.explanation.location == it.place("RAISES")
    assert all("__repr__" not in each.function for each in head.frames if each.is_users)
    assert len(it.text.encode()) <= 2000


async def test_what_was_being_handled_comes_after_and_with_its_own_line(told: Telling) -> None:
    it = await told("context")
    [context] = it.explanation.chain
    assert (context.link, _place(context.site)) == ("context", it.place("CONTEXT"))
    assert it.explanation.error == "KeyError: 'missing'"
    assert it.text.splitlines()[0].startswith("KeyError: 'missing'")
    assert context.error.startswith("ValueError")


async def test_a_cause_is_told_with_its_own_line(told: Telling) -> None:
    it = await told("cause")
    [cause] = it.explanation.chain
    assert (cause.link, _place(cause.site)) == ("cause", it.place("CAUSE"))


async def test_a_context_that_was_hidden_is_not_told(told: Telling) -> None:
    it = await told("hidden_context")
    assert not it.explanation.chain
    assert not it.explanation.also_raised


@pytest.mark.parametrize("name", ["swallowed", "did_not_raise"])
async def test_a_swallowed_exception_is_told_as_caught_and_not_as_the_failure(name: str, told: Telling) -> None:
    it = await told(name)
    [aside] = it.explanation.also_raised
    assert f"{aside['file']}:{aside['line']}" == it.place("SWALLOWED")
    assert aside["caught"]["function"] == "parse"
    assert not it.explanation.error.startswith("ValueError")


@pytest.mark.parametrize("name", ["finally", "with_block"])
async def test_a_frame_that_an_exception_left_through_a_finally_has_not_returned(name: str, told: Telling) -> None:
    it = await told(name)
    assert not it.explanation.also_raised
    assert it.explanation.blamed is not None
    assert it.explanation.blamed.expression == "value"
    assert it.explanation.steps


@pytest.mark.parametrize("name", ["repr_of_pytest", "repr_that_raises", "repr_of_logging"])
async def test_what_only_shows_a_value_is_no_part_of_the_story(name: str, told: Telling) -> None:
    it = await told(name)
    assert it.place("REPR") not in it.places
    assert not it.explanation.also_raised
    shown = [*it.explanation.calls, *(each.record for each in it.explanation.origins if each.record)]
    assert all("__repr__" not in str(each["function"]) for each in shown)
    assert all("__str__" not in str(each["function"]) for each in shown)
    assert all("helper" not in str(each["function"]) for each in shown)


async def test_a_text_that_the_test_itself_makes_is_part_of_it(told: Telling) -> None:
    it = await told("text_under_test")
    assert [str(each["function"]) for each in it.explanation.calls] == ["Money.__str__"]
    assert not it.explanation.locations


async def test_a_value_that_compares_itself_is_not_blamed_on_who_made_it(told: Telling) -> None:
    it = await told("repr_of_pytest")
    assert not it.explanation.locations
    assert "Box.__eq__" in [str(each["function"]) for each in it.explanation.calls]


@pytest.mark.parametrize("name", ["frozen", "standard_library"])
async def test_a_frame_of_the_standard_library_is_labelled_so(name: str, told: Telling) -> None:
    it = await told(name)
    head = it.explanation.head
    assert head is not None
    assert head.site is not None
    assert head.site.label == STANDARD
    assert {each.label for each in head.frames} == {USER, STANDARD}


async def test_a_generator_yields_and_does_not_return(told: Telling) -> None:
    it = await told("generator")
    [record] = [each.record for each in it.explanation.origins if each.record is not None]
    assert (record["yields"], record["yielded"], record["returned"]) == (3, "3", None)
    assert "returned None" not in it.text
    assert it.places[0] == it.place("MADE")


async def test_a_generator_inside_a_call_is_not_said_to_return(told: Telling) -> None:
    assert "returned None" not in (await told("generator_in_function")).text


@pytest.mark.parametrize("name", ["decorator", "property", "stated", "context_manager_returns"])
async def test_the_way_back_ends_where_the_value_was_made(name: str, told: Telling) -> None:
    it = await told(name)
    assert it.places[0] == it.place("MADE"), it.text


async def test_a_captured_name_was_passed_by_no_line(told: Telling) -> None:
    it = await told("closure")
    assert it.explanation.blamed is not None
    assert it.explanation.blamed.expression == "key"
    assert not it.explanation.origins


async def test_of_two_computed_sides_neither_is_blamed(told: Telling) -> None:
    it = await told("two_sides")
    assert not it.explanation.locations
    assert it.explanation.blamed is None
    assert {each.suspect.expression for each in it.explanation.facts} == {"expected", "result"}


async def test_calls_of_earlier_rounds_are_not_told_as_those_that_failed(told: Telling) -> None:
    it = await told("loop")
    assert [each["arguments"] for each in it.explanation.calls] == [{"n": "3"}, {"n": "0"}]


async def test_a_default_that_was_passed_is_not_said_to_be_shared(told: Telling) -> None:
    it = await told("default_given")
    assert all("shared" not in each.what for each in it.explanation.origins)


@pytest.mark.parametrize("name", ["thread", "context", "helper", "pool", "finally"])
async def test_a_line_of_the_test_is_not_blamed_for_what_it_tests(name: str, told: Telling) -> None:
    it = await told(name)
    assert not any(each.is_test for each in it.explanation.locations), it.text
    assert not it.explanation.locations


async def test_the_parts_of_a_group_are_opened(told: Telling) -> None:
    it = await told("group")
    assert it.explanation.head is not None
    assert [_place(part.site) for part in it.explanation.head.parts] == [it.place("ONE"), it.place("TWO")]


async def test_the_part_of_a_task_group_is_opened(told: Telling) -> None:
    it = await told("task_group")
    assert it.explanation.head is not None
    [part] = it.explanation.head.parts
    assert (part.error, _place(part.site)) == ("ValueError: in a task", it.place("ONE"))


@pytest.mark.parametrize(("name", "thread"), [("thread", "worker-7"), ("callback", "")])
async def test_an_exception_of_a_thread_or_handler_is_told(name: str, thread: str, told: Telling) -> None:
    it = await told(name)
    [aside] = it.explanation.also_raised
    assert f"{aside['file']}:{aside['line']}" == it.place("ASIDE")
    assert (aside["caught"], aside["thread"]) == (None, thread)
    assert not it.explanation.locations


@pytest.mark.parametrize("name", ["child", "checked_child"])
async def test_the_exception_of_a_child_process_is_told(name: str, told: Telling) -> None:
    it = await told(name)
    [written] = it.explanation.written
    assert (written.error, _place(written.user)) == ("KeyError: 'colour'", f"{Path(it.file).parent}/child.py:3")


async def test_the_line_in_a_worker_process_is_told(told: Telling) -> None:
    it = await told("process_pool")
    assert [_place(each.user) for each in it.explanation.written] == [it.place("CHILD")]


async def test_the_whole_message_of_a_mock_is_shown(told: Telling) -> None:
    it = await told("mock")
    assert any("post('a', 1)" in line for line in it.explanation.detail)
    assert any("post('b', 2)" in line for line in it.explanation.detail)


async def test_what_a_call_did_that_did_not_raise_is_shown(told: Telling) -> None:
    it = await told("did_not_raise")
    [call] = it.explanation.calls
    assert (call["function"], call["arguments"], call["returned"]) == ("parse", {"text": "'x'"}, "None")
    assert not it.explanation.locations


@pytest.mark.parametrize(
    ("name", "said"), [("exit", "wrong usage"), ("hard_exit", "giving up"), ("crash", "so far"), ("plain", "begins")]
)
async def test_the_output_of_a_program_that_ended_is_shown(name: str, said: str, told: Telling) -> None:
    it = await told(name)
    assert it.explanation.output == (said,)


async def test_a_crash_is_told_in_the_words_of_the_interpreter(told: Telling) -> None:
    it = await told("crash")
    assert it.explanation.error == "Fatal Python error: Segmentation fault"
    assert it.explanation.head is not None
    assert it.explanation.head.site is not None
    assert it.explanation.head.site.label == STANDARD


async def test_a_library_is_labelled_and_the_call_into_it_is_named(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "site-packages" / "vendored"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def take(items):\n    return items[5]\n", encoding="utf-8")
    (tmp_path / "app.py").write_text(
        f"import sys\nsys.path.insert(0, {str(package.parent)!r})\nimport vendored\nvendored.take([1])\n",
        encoding="utf-8",
    )
    found = await explained(tmp_path, "app.py")
    head = found.failures[0][1].head
    assert head is not None
    assert (_place(head.user), _place(head.site)) == (f"{tmp_path}/app.py:4", f"{package}/__init__.py:2")
    assert head.site is not None
    assert head.site.label == LIBRARY


async def test_source_outside_the_workspace_that_is_not_installed_is_the_users(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "developed.py").write_text("def take(items):\n    return items[5]\n", encoding="utf-8")
    (tmp_path / "project" / "app.py").write_text(
        f"import sys\nsys.path.insert(0, {str(tmp_path / 'library')!r})\nimport developed\ndeveloped.take([1])\n",
        encoding="utf-8",
    )
    found = await explained(tmp_path / "project", "app.py")
    assert found.failures[0][1].location == f"{tmp_path}/library/developed.py:2"


async def test_an_installed_package_whose_own_tests_are_run_is_the_users(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "site-packages" / "shipped"
    (package / "tests").mkdir(parents=True)
    (package / "__init__.py").write_text("def up(n):\n    return n + 2\n", encoding="utf-8")
    (package / "tests" / "__init__.py").write_text("", encoding="utf-8")
    (package / "tests" / "test_up.py").write_text(
        "from shipped import up\ndef test_up():\n    assert up(1) == 2\n", encoding="utf-8"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    found = await explained(tmp_path, f"pytest {package / 'tests' / 'test_up.py'}")
    explanation = found.failures[0][1]
    assert explanation.head is not None
    assert explanation.head.user is not None
    assert [f"{each.file}:{each.line}" for each in explanation.locations] == [f"{package}/__init__.py:2"]


async def test_no_frame_of_the_users_is_said_and_the_librarys_is_labelled(tmp_path: Path) -> None:
    found = await explained(tmp_path, "python -m json.tool no-such-file")
    explanation = found.failures[0][1]
    assert explanation.head is not None
    assert explanation.head.user is None
    assert not explanation.locations
    assert explanation.head.site is not None
    assert explanation.head.site.label == STANDARD


IDS = ["a b/c", 'say "hi"', "it's", "x]y z", "two  blanks"]


@pytest.mark.parametrize("text", IDS)
async def test_a_node_id_with_blanks_and_quotes_is_one_word(text: str, tmp_path: Path) -> None:
    (tmp_path / "test_ids.py").write_text(
        f"import pytest\n@pytest.mark.parametrize('text', {IDS!r})\ndef test_it(text):\n    assert not text\n",
        encoding="utf-8",
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    name = f"test_ids.py::test_it[{text}]"
    found = await explained(tmp_path, name)
    assert found.failed == (name,)
    assert read_target(f"pytest {name} -x", tmp_path).words == (name, "-x")
    assert read_target(["pytest", name], tmp_path).words == (name,)


async def test_all_failing_tests_are_named(tmp_path: Path) -> None:
    (tmp_path / "test_many.py").write_text(
        "import pytest\n@pytest.mark.parametrize('n', range(12))\ndef test_n(n):\n    assert n < 0\n", encoding="utf-8"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    found = await explained(tmp_path, "test_many.py")
    assert found.failed == tuple(f"test_many.py::test_n[{n}]" for n in range(12))
    assert (found.failed_count, len(found.failures)) == (12, 3)
    result = await _called(tmp_path, target="test_many.py")
    assert (result["failed_count"], len(result["failed"])) == (12, 12)
    assert all(name in result["value"] for name in found.failed[:10])
    assert len(result["value"].encode()) <= 2000


async def test_discovery_of_unittest_is_run(tmp_path: Path) -> None:
    (tmp_path / "test_found.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(1, 2)\n",
        encoding="utf-8",
    )
    found = await explained(tmp_path, "python -m unittest")
    assert [each.location for _, each in found.failures] == [f"{tmp_path}/test_found.py:4"]
    assert not found.failures[0][1].output


async def test_a_program_given_as_a_text_is_run(tmp_path: Path) -> None:
    found = await explained(tmp_path, "python -c 'def f(x):\n    return x[0]\nf([])'")
    head = found.failures[0][1].head
    assert head is not None
    assert head.user is not None
    assert (head.user.line, head.user.function, head.user.code) == (2, "f", "return x[0]")


DOCTEST = '''\
def add(a, b):
    """Add.

    >>> add(1, 2)
    4
    """
    return a + b
'''


async def test_the_example_of_a_doctest_is_the_place(tmp_path: Path) -> None:
    (tmp_path / "doc.py").write_text(DOCTEST, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    found = await explained(tmp_path, "pytest --doctest-modules doc.py")
    explanation = found.failures[0][1]
    assert (explanation.location, explanation.code) == (f"{tmp_path}/doc.py:4", "add(1, 2)")
    assert "'4'" in explanation.error
    assert "'3'" in explanation.error


@pytest.mark.parametrize(
    ("asked", "meant"), [("test_a.py::test_pirce", "test_a.py::test_price"), ("tset_a.py", "test_a.py")]
)
async def test_a_misspelt_test_is_answered_with_the_nearest(asked: str, meant: str, tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("def test_price():\n    pass\n", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    found = await explained(tmp_path, f"pytest {asked}")
    assert found.nearest_tests[0] == meant
    result = await _called(tmp_path, target=f"pytest {asked}")
    assert not result["success"]
    assert meant in result["instruction"]
    assert "not found" in result["error"]["message"]
    assert "not found" in result["output"]


def test_an_error_of_the_command_is_json_where_that_is_asked_for(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "trysquare", "explain", "test_none.py::test_x", "--json", "--project", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, **ENV},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert '"success": false' in done.stdout
    assert "file or directory not found" in done.stdout


def test_the_command_prints_what_the_program_wrote(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import os\nprint('as far as here')\nos.kill(os.getpid(), 9)\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "trysquare", "explain", "app.py", "--project", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "as far as here" in done.stdout
    assert "SIGKILL" in done.stderr


async def _called(folder: Path, **arguments: Any) -> dict[str, Any]:
    async with open_debugger(DebugConfig(root=folder)) as tools:
        return (await call_tool(tools, "explain", {"runtime_path": sys.executable, **arguments})).to_json()


def _place(site: Site | None) -> str:
    assert site is not None
    return site.location
