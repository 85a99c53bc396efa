"""Code of a bot's own directory: document types, Python scanners and commands, in the sandbox."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.bots.bot_folders import write_bot
from trysquare import call_tool
from trysquare.bots import BotConfig, DocumentError, DocumentType, load_bot, open_bot, sandbox
from trysquare.bots.definition.check import check_folder
from trysquare.bots.documents import paths
from trysquare.bots.scanners.base import CommandScanner, PythonScanner, RegexScanner, Rule, Target
from trysquare.bots.scanners.runner import Artifacts, ScanReport, Source, scan
from trysquare.bots.workflow.runs import open_workflows
from trysquare.core.errors import InvalidArguments
from trysquare.files.root import DirectoryRoot
from trysquare.processes.sandbox.backends import BACKENDS, available_sandbox

WEDDING = Path(__file__).parents[2] / "examples/bots/wedding"
GUESTS = "docs/guests.csv"


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to hold a program."""
    assert available_sandbox((request.param,)) == request.param
    monkeypatch.setattr(sandbox, "BACKENDS", (request.param,))
    return str(request.param)


async def done(project: Path, name: str, **parameters: Any) -> dict[str, Any]:
    config = BotConfig(folder=WEDDING, project=project, project_named=True, watch=False)
    async with open_bot(config, open_store=lambda root: open_workflows(None, root), approvals=None) as bot:
        result = await call_tool(bot, f"wedding_{name}", {"parameters": parameters})
    assert result.error is None, result.error
    return dict(result.fields)


async def test_a_type_of_its_own_is_built_rendered_carried_back_and_validated(backend: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "docs").mkdir(parents=True)
    guests = project / GUESTS
    guests.write_text("name,table,diet\nAda,1,vegan\nCharles,2\n")
    broken = (await done(project, "invite_validate_rules"))["data"]["instructions"]["violations"]
    assert [(each["rule"], each["line"]) for each in broken] == [("guest_list", 3)]

    guests.write_text("name,table,diet\n" + "".join(f"Guest {each},1,paleo\n" for each in range(9)))
    full = (await done(project, "invite_validate_rules"))["data"]["instructions"]["violations"]
    assert [(each["rule"], each["line"], each["where"]) for each in full] == [("guest_list", 10, "/guests/8")]

    guests.write_text("name,table,diet\nAda,1,vegan\nCharles,2,paleo\n")
    assert all(each["changed"] for each in (await done(project, "invite_render_output"))["data"]["files"])
    assert "<svg" in (project / "docs/tables.svg").read_text()
    page = project / "docs/guests.md"
    page.write_text(page.read_text().replace("Ada", "Ada Lovelace") + "The band plays at ???\n")
    (carried,) = (await done(project, "invite_synchronize_output"))["data"]["files"]
    assert len(carried["changes"]) == len(carried["conflicts"]) == 1
    assert guests.read_text().splitlines()[1] == "Ada Lovelace,1,vegan"

    found = (await done(project, "invite_validate_rules"))["data"]["instructions"]["violations"]
    assert {(each["rule"], each["file"], each["line"]) for each in found} == {
        ("diets", GUESTS, 3),
        ("open_points", "docs/guests.md", 5),
    }


HOSTILE = """
import os, pathlib, socket, subprocess, urllib.request

def attempt(value, *, port, secret, project):
    for name, act in {
        "wrote into the project": lambda: pathlib.Path(project, "made").write_text("x"),
        "changed the document": lambda: pathlib.Path(project, "a.md").write_text("x"),
        "wrote into the bot": lambda: pathlib.Path(__file__).write_text("x"),
        "read the state": lambda: pathlib.Path(project, ".trysquare/secret").read_text(),
        "read the home": lambda: pathlib.Path(secret).read_text(),
        "reached the network": lambda: socket.create_connection(("127.0.0.1", port), 2),
        "reserved memory": lambda: len(bytearray(2 * 1024 ** 3)),
        "filled the disk": lambda: pathlib.Path(os.environ.get("TMPDIR", "/tmp"), "big").write_bytes(b"x" * 8_000_000),
    }.items():
        try:
            act()
        except (OSError, MemoryError):
            continue
        yield name
    yield "ran in " + os.getcwd()
"""


def scanned(project: Path, scanner: PythonScanner | CommandScanner, *, seconds: float = 60) -> ScanReport:
    rule = Rule(name="own", file="rules/own.json", description="d", scanner=scanner)
    with DirectoryRoot(project) as folder:
        return scan([rule], Artifacts(folder=folder), seconds=seconds)


def python(bot: Path, code: str, **options: Any) -> PythonScanner:
    (bot / "scanners").mkdir(parents=True, exist_ok=True)
    (bot / "scanners/own.py").write_text(code)
    target = Target(kind="file")
    return PythonScanner(callable="scanners/own.py:attempt", target=target, message="m", options=options, bot=bot)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / ".trysquare").mkdir(parents=True)
    (made / ".trysquare/secret").write_text("secret")
    (made / "a.md").write_text("text\n")
    return made


def test_code_of_a_bot_reads_the_project_and_nothing_else_happens(
    backend: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh/id").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    with socket.create_server(("127.0.0.1", 0)) as server:
        options = {"port": server.getsockname()[1], "secret": str(home / ".ssh/id"), "project": str(project)}
        report = scanned(project, python(tmp_path / "bot", HOSTILE, **options))
    assert [each.message for each in report.violations] == [f"ran in {project.resolve()}"], report
    command = ("sh", "-c", 'for file; do echo "$file:1: read"; rm -f "$file"; echo x >made; done', "sh", "{files}")
    deleting = CommandScanner(argv=command, target=Target(kind="file"), message="m")
    assert [each.message for each in scanned(project, deleting).violations] == ["read"]
    assert sorted(each.name for each in project.iterdir()) == [".trysquare", "a.md"]
    assert (project / "a.md").read_text() == "text\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def attempt(value):\n    return [][1]\n", "own.py:2: IndexError"),
        ("def attempt(value)\n", "own.py:1: SyntaxError"),
        ("import time\ndef attempt(value):\n    while True:\n        time.sleep(60)\n", "timed out after 1 seconds"),
        ("def attempt(value):\n    return ['x' * 5_000_000]\n", "failed"),
        ("import os\ndef attempt(value):\n    os._exit(7)\n", "exit code 7"),
        ("def attempt(value):\n    return 'text'\n", "TypeError"),
    ],
)
def test_a_scanner_that_fails_is_a_problem_of_its_rule(project: Path, tmp_path: Path, code: str, said: str) -> None:
    seconds = 1 if "sleep" in code else 60
    report = scanned(project, python(tmp_path / "bot", code), seconds=seconds)
    assert not report.clean
    assert said in report.problems[0].message


def test_without_a_sandbox_nothing_of_a_bot_runs(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "BACKENDS", ())
    report = scanned(project, python(tmp_path / "bot", "def attempt(value):\n    return ['ran']\n"))
    assert "No sandbox is available" in report.problems[0].message
    assert not report.violations


TYPE = """
from trysquare.bots import DocumentType, DocumentError

class Own(DocumentType):
    BODY
"""


def own_bot(folder: Path, body: str) -> Path:
    build = {"name": "own", "type": "own", "output": "own.txt", "template": "own.txt"}
    place = "behaviors/1_shape/2_content/1_knowledge_graph"
    return write_bot(
        folder, {"types/own.py": TYPE.replace("BODY", body), f"{place}/build_own.json": build, f"{place}/own.txt": "1"}
    )


@pytest.mark.parametrize(
    ("body", "code", "file", "line"),
    [
        ("def parse(self, text): return undefined", "type_failed", "types/own.py", 5),
        ("def parse(self, text): return float('nan')", "type_failed", "types/own.py", 1),
        ("def parse(self, text): return {1, 2}", "type_failed", "types/own.py", 1),
        ("def problems(self, value): return [1]", "type_failed", "types/own.py", 1),
        ("def parse(self, text): raise DocumentError('odd', 1)", "not_parsed", "own.txt", 1),
        ("targets = tuple('ab')", "invalid_type", "types/own.py", 1),
        ("format = 'xml'", "invalid_type", "types/own.py", 1),
        ("builders = ('map',)", "type_failed", "build_own.json", 1),
        ("def parse(self, text) return 1", "invalid", "types/own.py", 5),
    ],
)
def test_check_names_the_file_and_line_of_a_wrong_type(
    tmp_path: Path, body: str, code: str, file: str, line: int
) -> None:
    found = [each for each in check_folder(own_bot(tmp_path, body)).findings if each.code == code]
    assert [(each.file.endswith(file), each.line) for each in found] == [(True, line)], found
    assert found[0].remedy


def test_the_example_is_right_and_nothing_of_it_runs_when_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [each for each in check_folder(WEDDING).findings if each.severity == "error"]
    monkeypatch.setattr(sandbox, "BACKENDS", ())
    (config,) = load_bot(WEDDING).behaviors[0].content.knowledge
    assert (config.type.targets, config.type.builders) == (("guest",), ("tables_svg",))


class Installed(DocumentType):
    """A type of an installed package, which an entry point names."""

    format = "yaml"
    builders = ("shout",)

    def build(self, builder: str, value: Any) -> str:
        return str(value).upper()


def test_a_type_of_an_installed_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "site/own-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[trysquare.document_types]\nown = tests.bots.test_own_code:Installed\nodd = json:loads\nlost = no.such:it\n"
    )
    monkeypatch.syspath_prepend(str(about.parent))
    root = own_bot(tmp_path / "bot", "pass")
    shutil.rmtree(root / "types")
    (config,) = load_bot(root).behaviors[0].content.knowledge
    assert (config.type.build("shout", "a"), config.type.parse("a: 1")) == ("A", {"a": 1})
    build = root / "behaviors/1_shape/2_content/1_knowledge_graph/build_own.json"
    for name, code in {"odd": "invalid_type", "lost": "invalid_type", "none": "unknown_name"}.items():
        build.write_text(json.dumps({"name": "own", "type": name, "output": "own.txt", "template": "own.txt"}))
        assert [each.code for each in check_folder(root).findings if each.severity == "error"] == [code]


def test_a_type_without_builders_or_dump_says_so() -> None:
    with pytest.raises(InvalidArguments, match="has no builder `map`"):
        DocumentType().build("map", {})

    class Parsed(DocumentType):
        def parse(self, text: str) -> Any:
            return text

    with pytest.raises(DocumentError, match="has no `dump`"):
        Parsed(name="parsed").dump("a", "b")
    assert Parsed().lines("a") == {}


def test_a_path_whose_time_grows_with_the_square_of_the_document_is_ended(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = project / "a.json"
    document.write_text(json.dumps({"items": [{"id": number} for number in range(6)]}))

    def report(path: str) -> ScanReport:
        scanner = RegexScanner(pattern="5", target=Target(kind="path", field=path), message="five")
        rule = Rule(name="own", file="rules/own.json", description="d", scanner=scanner)
        with DirectoryRoot(project) as folder:
            return scan([rule], Artifacts(folder=folder, documents=(Source(path="a.json", type=DocumentType()),)))

    assert [each.message for each in report("$.items[?@.id in $.items[*].id].id").violations] == []
    assert [each.where for each in report("$.items[?count($..*) > 3].id").violations] == ["$.items[5].id"]
    document.write_text(json.dumps({"items": [{"id": number} for number in range(5_000)]}))
    monkeypatch.setattr(paths, "SECONDS", 1)
    (problem,) = report("$..[?count($..*) > 3]").problems
    assert "a.json" in problem.message
    assert "timed out after 1 seconds" in problem.message


def test_an_empty_document_and_two_in_one_file_are_said_as_that() -> None:
    for form in ("json", "yaml"):
        with pytest.raises(DocumentError, match="is empty"):
            DocumentType(format=form).parse("\n")
    with pytest.raises(DocumentError, match="expected a single document"):
        DocumentType(format="yaml").parse("a: 1\n---\nb: 2\n")
