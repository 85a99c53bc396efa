"""What a source of tools may name, and what is said when it names nothing."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from trysquare import ConfigurationError, Toolset
from trysquare.sources import load_tools

HEAD = "from trysquare import Declarations, StaticToolset, ToolArguments, tool\n\n"
FUNCTION = 'def hello(name: str) -> str:\n    """Say hello."""\n    return name\n\n\n'
_numbers = itertools.count()

Module = Callable[[str], str]


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Module]:
    """Write a module of a name that no other test uses."""
    path = list(sys.path)

    def write(text: str) -> str:
        name = f"named_tools_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text(HEAD + text, encoding="utf-8")
        return name

    yield write
    sys.path[:] = path


def names(toolset: Toolset) -> list[str]:
    return [tool.name for tool in toolset.tools()]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (FUNCTION + "t = Declarations()\nt.declare(hello)\n", "t"),
        (FUNCTION + "t = StaticToolset([tool(hello)])\n", "t"),
        (FUNCTION + "t = tool(hello)\n", "t"),
        (FUNCTION + "t = [tool(hello)]\n", "t"),
        (FUNCTION + "t = (hello,)\n", "t"),
        (FUNCTION, "hello"),
        (FUNCTION + "class Box:\n    t = tool(hello)\n", "Box.t"),
        (FUNCTION + "ToolArguments.declare(hello)\n", ""),
        (FUNCTION + "t = Declarations()\nt.declare(hello)\nsame = t\n", ""),
    ],
)
def test_every_source_of_tools_can_be_named(tmp_path: Path, module: Module, text: str, name: str) -> None:
    written = module(text)
    named = f"{written}:{name}" if name else written
    assert names(load_tools(named, project=tmp_path)) == ["hello"]


def refusal(tmp_path: Path, named: str) -> str:
    with pytest.raises(ConfigurationError) as raised:
        load_tools(named, project=tmp_path)
    return str(raised.value)


def test_a_missing_module_names_the_nearest_of_the_project(tmp_path: Path, module: Module) -> None:
    (tmp_path / "weather_tools.py").touch()
    said = refusal(tmp_path, "weather_tols:tools")
    assert said == ("weather_tols:tools: module `weather_tols` not found. Did you mean `weather_tools`?")


def test_a_missing_part_of_a_package_is_told_from_the_package(tmp_path: Path, module: Module) -> None:
    package = tmp_path / "some_package_of_ours"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "weather.py").touch()
    said = refusal(tmp_path, "some_package_of_ours.wether:tools")
    assert "module `some_package_of_ours.wether` not found." in said
    assert "Did you mean `some_package_of_ours.weather`?" in said


def test_a_missing_name_names_the_nearest(tmp_path: Path, module: Module) -> None:
    written = module("my_tools = Declarations()\n")
    assert f"{written} has no `my_tool`. Did you mean `my_tools`?" in refusal(tmp_path, f"{written}:my_tool")


def test_a_missing_name_that_is_near_nothing_names_what_holds_tools(tmp_path: Path, module: Module) -> None:
    written = module("declared = Declarations()\n")
    assert "Did you mean `declared`?" in refusal(tmp_path, f"{written}:zzzz")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t = 3\n", "`int` is not a source of tools. Name a `Tools` object, a Toolset"),
        ("t = Declarations\n", "`type` is not a source of tools."),
        ("t = ['hello']\n", "the list contains a `str`. List tools only."),
        (FUNCTION + "t = [tool(hello), hello]\n", "Two tools are called `hello`."),
    ],
)
def test_a_value_of_the_wrong_kind_is_told(tmp_path: Path, module: Module, text: str, said: str) -> None:
    assert said in refusal(tmp_path, f"{module(text)}:t")


@pytest.mark.parametrize(
    ("text", "said", "line"),
    [
        ("x = 1 / 0\n", "import failed: ZeroDivisionError: division by zero", 3),
        ("import no_such_module_anywhere\n", "import failed: ModuleNotFoundError: No module named", 3),
        ("x = (\n", "import failed: SyntaxError: '(' was never closed", 3),
        ("raise SystemExit('stop')\n", "import failed: SystemExit: stop", 3),
    ],
)
def test_a_module_that_fails_says_where(tmp_path: Path, module: Module, text: str, said: str, line: int) -> None:
    written = module(text)
    told = refusal(tmp_path, f"{written}:t")
    assert said in told
    assert f"({tmp_path}/{written}.py:{line})" in told


def test_a_module_without_tools_says_what_to_name(tmp_path: Path, module: Module) -> None:
    assert "the module declares no tools." in refusal(tmp_path, module("x = 1\n"))


def test_what_a_module_prints_does_not_reach_stdout(
    tmp_path: Path, module: Module, capsys: pytest.CaptureFixture[str]
) -> None:
    load_tools(f"{module(FUNCTION + 'print(1)')}:hello", project=tmp_path)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "1\n")


def test_a_declaration_that_is_refused_is_reported_with_its_own_line(module: Module, tmp_path: Path) -> None:
    name = module('t = Declarations()\n\n\n@t.resource("x://{a}{&b}")\ndef read(a: str) -> str:\n    return a\n')
    with pytest.raises(ConfigurationError) as caught:
        load_tools(f"{name}:t", project=tmp_path)
    assert "`{&b}`" in str(caught.value)
    assert f"({tmp_path}/{name}.py:6)" in str(caught.value)


SERVER = HEAD + FUNCTION + "tools = Declarations()\ntools.declare(hello)\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def fresh() -> Iterator[None]:
    """Modules that a test imports are forgotten after it."""
    before, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("named", ["server_a.py", "server_a.py:tools", "nested/server_b.py", "my-server.py", "json.py"])
def test_a_file_is_a_source_wherever_it_is_and_whatever_it_is_called(tmp_path: Path, named: str) -> None:
    sibling = "import sibling_of_file\n" + SERVER
    write(tmp_path, dict.fromkeys(["server_a.py", "nested/server_b.py", "my-server.py", "json.py"], sibling))
    write(tmp_path, dict.fromkeys(["sibling_of_file.py", "nested/sibling_of_file.py"], ""))
    assert names(load_tools(named, project=tmp_path)) == ["hello"]


@pytest.mark.usefixtures("fresh")
def test_a_file_of_a_package_has_its_relative_imports_and_is_one_module(tmp_path: Path) -> None:
    inner = (
        "from ..above_it import X\nfrom . import beside_it\n" + SERVER + "assert beside_it.count.append(1) is None\n"
    )
    files = {"pack_a/__init__.py": "", "pack_a/above_it.py": "X = 1\n", "pack_a/sub/__init__.py": ""}
    write(tmp_path, {**files, "pack_a/sub/inner.py": inner, "pack_a/sub/beside_it.py": "count = []\n"})
    for named in ("pack_a/sub/inner.py", "pack_a.sub.inner", "pack_a.sub.inner:tools"):
        assert names(load_tools(named, project=tmp_path)) == ["hello"]
    assert sys.modules["pack_a.sub.beside_it"].count == [1]


@pytest.mark.usefixtures("fresh")
def test_a_module_with_several_sources_says_how_to_choose(tmp_path: Path) -> None:
    write(tmp_path, {"several.py": SERVER + "others = Declarations()\n"})
    said = refusal(tmp_path, "several.py")
    assert "Choose: `several.py:tools`, `several.py:others`." in said


@pytest.mark.usefixtures("fresh")
def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, {"weather.py": SERVER})
    assert "file not found. Did you mean `weather.py`?" in refusal(tmp_path, "wether.py")


@pytest.mark.usefixtures("fresh")
def test_a_failing_import_shows_only_the_lines_of_the_user(tmp_path: Path) -> None:
    write(tmp_path, {"outer_a.py": "import json\nimport inner_a\n", "inner_a.py": "import json\njson.loads('{')\n"})
    said = refusal(tmp_path, "outer_a.py")
    assert f"({tmp_path}/inner_a.py:2)" in said
    assert f"\n  {tmp_path}/outer_a.py:2" in said
    assert "json/" not in said
    assert "trysquare" not in said.replace(str(tmp_path), "")


@pytest.mark.usefixtures("fresh")
def test_a_fastmcp_server_is_a_source(tmp_path: Path) -> None:
    pytest.importorskip("fastmcp", reason="an extra")
    code = "from fastmcp import FastMCP\nmcp = FastMCP('x')\n\n\n@mcp.tool\ndef add(a: int) -> int:\n    return a\n"
    write(tmp_path, {"fast_one.py": code})
    assert [tool.name for tool in load_tools("fast_one.py", project=tmp_path).tools()] == ["add"]
