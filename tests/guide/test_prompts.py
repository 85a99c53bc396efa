"""Prompts and commands: `@guide` delivers content, `:name` runs a command, and typing is completed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.guide.opened import ask, opened, write_guide
from trysquare import CallContext, Text, ToolError
from trysquare.app import App
from trysquare.core.errors import InvalidArguments
from trysquare.guide.prompts.prompt import CommandLine, parse_command
from trysquare.guide.retrieval import BY_TYPE


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[App]:
    write_guide(tmp_path / "shop")
    async with opened(tmp_path / "shop") as app:
        yield app


async def rendered(app: App, *words: str) -> str:
    prompt = app.toolset.find_prompt("guide")
    assert prompt is not None
    given = {argument.name: word for argument, word in zip(prompt.arguments, words, strict=False)}
    [message] = await prompt.render(given, CallContext(direct=app.serve_options().direct))
    assert isinstance(message.content, Text)
    return message.content.text


async def completed(app: App, typed: str) -> list[str]:
    prompt = app.toolset.find_prompt("guide")
    assert prompt is not None
    assert prompt.complete is not None
    return list(await prompt.complete("arg1", typed, {}))


async def test_the_prompt_delivers_content_and_what_to_do_with_it(app: App) -> None:
    assert await rendered(app, "lang/python") == f"Use four spaces.\n\n{BY_TYPE['agent/instruction']}"


async def test_several_words_are_several_expressions_in_order(app: App) -> None:
    text = await rendered(app, "docs/api", "lang/python")
    assert text.index("The API speaks JSON.") < text.index("Use four spaces.")


async def test_without_words_the_startup_expression_is_delivered(app: App) -> None:
    with pytest.raises(ToolError, match="docs, lang, rules"):
        await rendered(app)
    await ask(app, "set_project_flag", name="startup-instruction", value="docs")
    assert (await rendered(app)).startswith("The API speaks JSON.")


async def test_an_unknown_document_is_refused_with_the_nearest_name(app: App) -> None:
    with pytest.raises(ToolError, match="`python`"):
        await rendered(app, "lang/pyton")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((":review", "src/app.py"), "Review src/app.py."),
        ((":review --strict src/app.py",), "Review src/app.py strictly."),
        ((";review", "--strict", "a b"), "Review a strictly."),
        ((":review", "--no-strict", "--", "--odd"), "Review --odd."),
    ],
)
async def test_a_command_sees_its_arguments_and_options(app: App, words: tuple[str, ...], text: str) -> None:
    assert (await rendered(app, *words)).strip() == text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((":review",), "at least 1 argument"),
        ((":reveiw", "x"), "`:review`"),
        ((":",), "name is missing"),
        ((":review 'x",), "cannot be read"),
        ((":../lang/python", "x"), "Unknown command"),
    ],
)
async def test_a_command_that_cannot_run_says_why(app: App, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ToolError, match=message):
        await rendered(app, *words)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", ["docs", "lang", "rules"]),
        ("l", ["lang"]),
        ("lang/", ["lang/python", "lang/rust"]),
        ("docs,lang/r", ["docs,lang/rust"]),
        (":", [":review"]),
        ("none/", []),
    ],
)
async def test_names_are_completed(app: App, typed: str, found: list[str]) -> None:
    assert await completed(app, typed) == found


def test_options_of_every_form_are_read() -> None:
    line = parse_command([":build", "--out=x y", "--fast", "--no-tests", "-vq", "a", "--", "-b"])
    assert line == CommandLine(
        name="build",
        arguments=("y", "a", "-b"),
        options={"out": "x", "fast": True, "tests": False, "v": True, "q": True},
    )


@given(st.lists(st.text(max_size=20), min_size=1, max_size=5))
def test_any_words_are_a_command_or_an_error_that_says_why(words: list[str]) -> None:
    try:
        assert parse_command(words).name
    except InvalidArguments:
        return
