"""The requirements of the tool infrastructure's specification, by their own names."""

from __future__ import annotations

import ast
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import Field, ValidationError

from tests.guide.opened import opened, write_guide
from trysquare import DeclarationError, ExtMcpToolDecorator, Result, ToolArguments, tool
from trysquare.catalog.descriptions import compact_description
from trysquare.sources import load_tools

SOURCE = Path(str(files("trysquare")))


class Create(ToolArguments):
    """Arguments of the tools below."""

    name: str = Field(description="Name of the document")
    confirm: Literal["CREATE_DOCUMENT"] = Field(description="Typed by the user")


async def create_document(args: Create) -> Result[str]:
    """Create a document."""
    return Result.ok(args.name)


class TestToolDescriptionBuilding:
    async def test_a_declared_tool_is_served_with_its_docstring_and_its_schema(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.syspath_prepend(tmp_path)
        text = "from trysquare import ToolArguments\nfrom pydantic import Field\n\n\nclass Say(ToolArguments):\n"
        text += "".join(
            f"    word_{n}: str = Field(description='Word number {n} of the sentence')\n" for n in range(20)
        )
        text += '\n\n@ToolArguments.declare\ndef say(args: Say) -> str:\n    """Say it again."""\n    return "it"\n'
        (tmp_path / "saying_tools.py").write_text(text, encoding="utf-8")
        [served] = load_tools("saying_tools", project=tmp_path).tools()
        model: Any = __import__("saying_tools")
        assert compact_description(served) == model.Say.build_tool_description(model.say)


class TestToolNamePrefixing:
    @pytest.mark.parametrize(("prefix", "name"), [("guide_", "guide_create_document"), ("", "create_document")])
    async def test_a_tool_is_registered_with_fastmcp_under_prefix_and_name(self, prefix: str, name: str) -> None:
        fastmcp = pytest.importorskip("fastmcp")
        server = fastmcp.FastMCP("team")
        assert ExtMcpToolDecorator(server, prefix=prefix).tool()(create_document) is create_document
        async with fastmcp.Client(server) as client:
            [listed] = await client.list_tools()
            answer = await client.call_tool(name, {"name": "plan", "confirm": "CREATE_DOCUMENT"})
            wrong = await client.call_tool(name, {"nam": "plan"}, raise_on_error=False)
        assert listed.name == name
        assert Create.to_schema_markdown() in listed.description
        assert "plan" in answer.content[0].text
        assert wrong.is_error

    def test_what_is_no_server_is_refused(self) -> None:
        with pytest.raises(DeclarationError, match="Cannot register tools with a `int`"):
            ExtMcpToolDecorator(3)


class TestEnvironmentConfiguration:
    @pytest.mark.parametrize(
        ("prefix", "name"), [(None, "guide_get_content"), ("team", "team_get_content"), ("", "get_content")]
    )
    async def test_the_default_prefix_is_guide_and_a_given_one_is_preserved(
        self, tmp_path: Path, prefix: str | None, name: str
    ) -> None:
        write_guide(tmp_path)
        async with opened(tmp_path, prefix=prefix) as app:
            assert app.toolset.find(name) is not None


class TestExplicitUsePattern:
    def test_a_literal_field_alone_puts_the_warning_into_the_description(self) -> None:
        text = compact_description(tool(create_document))
        assert "REQUIRES EXPLICIT USER INSTRUCTION" in text
        assert '"CREATE_DOCUMENT"' in text
        with pytest.raises(ValidationError):
            Create.model_validate({"name": "plan", "confirm": "create_document"})

    def test_a_literal_that_says_what_something_is_warns_of_nothing(self) -> None:
        def store(kind: Literal["invoice"], action: Literal["ADD_ROW"]) -> None:
            """Store an invoice."""

        assert "REQUIRES" not in compact_description(tool(store))


class TestDocumentationTemplates:
    @pytest.mark.parametrize("folder", ["tools", "prompts"])
    def test_a_template_is_beside_the_modules_in_the_package(self, folder: str) -> None:
        text = (SOURCE / "guide" / folder / "README.md").read_text(encoding="utf-8")
        sections = ["**Description**", "Schema**", "**Usage Instructions**", "**Concrete Examples**"]
        places = [text.index(section) for section in sections]
        assert places == sorted(places)

    def test_every_module_that_defines_tools_points_to_it_near_the_first(self) -> None:
        wanted = "# Documented as in guide/tools/README.md."
        assert {str(path.relative_to(SOURCE)): _line_before_tools(path) for path in _tool_modules()} == {
            str(path.relative_to(SOURCE)): wanted for path in _tool_modules()
        }


class TestPromptVarargsDocumentation:
    async def test_people_are_shown_words_and_never_counted_names(self, tmp_path: Path) -> None:
        write_guide(tmp_path)
        async with opened(tmp_path) as app:
            prompt = app.toolset.find_prompt("guide")
        assert prompt is not None
        assert [argument.title for argument in prompt.arguments] == [f"word {n}" for n in range(1, 16)]


def _tool_modules() -> list[Path]:
    folders = [path for name in ("guide", "debug", "workbench") for path in (SOURCE / name / "tools").glob("*.py")]
    return [path for path in folders if path.name != "__init__.py"]


def _line_before_tools(path: Path) -> str | None:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            made_by = [ast.unparse(decorator) for decorator in node.decorator_list]
            returned = ast.unparse(node.returns) if node.returns else ""
            if returned in ("Tool", "list[Tool]") or any(maker.startswith("debug_tool") for maker in made_by):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                return lines[first - 2]
    return None
