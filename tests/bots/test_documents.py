"""Documents of any shape: built, rendered, edited by hand, carried back and validated, behind a real client."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bots.incident_bot import CONTENT, INCIDENT, PAGE, SCHEMA, write_incident_bot
from tests.bots.served_bots import BotClient, served
from tests.support import size
from trysquare import ConfigurationError
from trysquare.bots import DocumentError, DocumentType, load_bot
from trysquare.bots.documents.formats import dump, parse, read_markdown
from trysquare.bots.graph import line_numbers
from trysquare.bots.rendered import synchronize
from trysquare.bots.rendering.carried import not_carried
from trysquare.bots.rendering.mustache import render_template
from trysquare.files.yaml import as_scalar, read_yaml

MANY = settings(max_examples=size(60, 500), deadline=None)
BUILD = f"{CONTENT}/1_knowledge_graph"
RENDER = f"{CONTENT}/2_render"


@asynccontextmanager
async def incident(tmp_path: Path, changes: dict[str, Any] | None = None) -> AsyncGenerator[BotClient]:
    """The incident bot in a project of its own."""
    project = tmp_path / "project"
    project.mkdir()
    bot = write_incident_bot(tmp_path / "bot", changes)
    async with served(project, bot=bot, name="incident_bot") as client:
        yield client


def write(bot: BotClient, path: str, text: str) -> None:
    file = bot.project / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def read(bot: BotClient, path: str) -> str:
    return (bot.project / path).read_text(encoding="utf-8")


async def test_build_hands_over_template_schema_rules_and_where_to_write(tmp_path: Path) -> None:
    async with incident(tmp_path) as bot:
        answer = await bot.call("respond_build_knowledge")
    given = answer["data"]["instructions"]
    assert given["knowledge:incident"] == {
        "output": "docs/incident.yaml",
        "type": "yaml",
        "template": INCIDENT,
        "schema": SCHEMA,
    }
    assert "rule:owners" in given


async def test_rules_name_file_line_and_place(tmp_path: Path) -> None:
    async with incident(tmp_path) as bot:
        write(bot, "docs/incident.yaml", INCIDENT)
        answer = await bot.call("respond_validate_rules")
    (found,) = answer["data"]["instructions"]["violations"]
    assert (found["rule"], found["file"], found["line"], found["text"], found["where"]) == (
        "owners", "docs/incident.yaml", 11, "TBD", "$.actions[0].owner",
    )  # fmt: skip
    assert answer["data"]["documents"] == {"docs/incident.yaml": "valid"}


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("severity: high", "severity: urgent", 3),
        ("    what: Roll back\n", "", 9),
        ("    owner: TBD", "    owner: {}", 11),
        ("    done: false", "    done: false\n    cost: 3", 9),
        ("title: Checkout is down", "title: [", 4),
        ("impact: Nobody", "title: Nobody", 4),
    ],
)
async def test_an_invalid_document_is_named_by_its_lines_and_not_clean(
    tmp_path: Path, old: str, new: str, line: int
) -> None:
    async with incident(tmp_path) as bot:
        write(bot, "docs/incident.yaml", INCIDENT.replace(old, new))
        answer = await bot.call("respond_validate_rules")
    (found,) = answer["data"]["instructions"]["violations"]
    assert (found["rule"], found["line"]) == ("yaml", line)
    assert answer["data"]["documents"] == {"docs/incident.yaml": "invalid"}
    assert not answer["data"]["clean"]


async def test_a_missing_document_is_said_and_never_clean(tmp_path: Path) -> None:
    async with incident(tmp_path, {"bot_config.json": {"name": "incident_bot", "gates": CLEAN}}) as bot:
        validated = await bot.call("respond_validate_rules")
        rendered = await bot.call("respond_render_output")
        await bot.call("respond_validate_rules")
        closed = await bot.call("close_current_action")
    assert validated["status"] == "failed"
    assert validated["data"]["documents"] == {"docs/incident.yaml": "missing"}
    assert not validated["data"]["clean"]
    assert rendered["status"] == "failed"
    assert "docs/incident.yaml does not exist" in rendered["warnings"][0]
    assert not closed["success"]


CLEAN = {"validate_rules": {"requires_clean": True}}


async def test_a_page_is_rendered_edited_by_hand_and_carried_back(tmp_path: Path) -> None:
    async with incident(tmp_path) as bot:
        write(bot, "docs/incident.yaml", INCIDENT)
        await bot.call("respond_render_output")
        page = read(bot, "docs/incident.md")
        assert "- [ ] A1: Roll back (TBD)" in page
        assert "- [x] A2: Add a limit (Ada)" in page
        edited = page.replace("[ ] A1: Roll back (TBD)", "[X] A1: Roll back (Grace)").replace("Nobody can", "Few could")
        write(bot, "docs/incident.md", edited)
        refused = await bot.call("respond_render_output")
        assert "edited since" in refused["warnings"][0]
        done = await bot.call("respond_synchronize_output")
        assert done["data"]["files"][0]["conflicts"] == []
        text = read(bot, "docs/incident.yaml")
        assert text == INCIDENT.replace("TBD", "Grace").replace("done: false", "done: true").replace(
            "Nobody can", "Few could"
        ), "comments and layout stay"
        again = await bot.call("respond_render_output")
        assert again["success"]
        assert read(bot, "docs/incident.md") == edited.replace("[X]", "[x]")


async def test_what_would_lose_comments_or_break_the_schema_is_refused_and_nothing_is_lost(tmp_path: Path) -> None:
    async with incident(tmp_path) as bot:
        write(bot, "docs/incident.yaml", INCIDENT)
        await bot.call("respond_render_output")
        page = read(bot, "docs/incident.md")
        write(bot, "docs/incident.md", page + "- [ ] A3: Call everyone (Ada)\n")
        commented = await bot.call("respond_synchronize_output")
        assert "comments" in commented["warnings"][0]
        write(bot, "docs/incident.md", page.replace("Severity: high", "Severity: urgent"))
        invalid = await bot.call("respond_synchronize_output")
        assert invalid["data"]["files"][0]["conflicts"]
        assert read(bot, "docs/incident.yaml") == INCIDENT


async def test_many_files_one_page_for_each_and_a_list_of_all(tmp_path: Path) -> None:
    changes = {
        f"{BUILD}/build_incident.json": {
            "name": "incident", "path": "docs", "output": "incidents/*.yaml", "template": "incident.yaml",
        },
        f"{RENDER}/render_incident.json": {
            "name": "incident_page", "path": "docs", "input": "incidents/*.yaml", "output": "pages/*.md",
            "template": "incident.md",
        },
        f"{RENDER}/render_list.json": {
            "name": "list", "input": "docs/incidents/*.yaml", "output": "docs/list.md", "template": "list.md",
        },
        f"{RENDER}/templates/list.md": "{{#documents}}\n- [{{title}}]({{stem}}.md)\n{{/documents}}\n",
        f"{RENDER}/render_tasks.json": {
            "name": "tasks", "input": "docs/incidents/*.yaml", "output": "docs/tasks/{{stem}}-{{id}}.md",
            "each": "$.actions[*]", "template": "task.md",
        },
        f"{RENDER}/templates/task.md": "# {{what}}\n\nOf {{title}}\n",
    }  # fmt: skip
    async with incident(tmp_path, changes) as bot:
        write(bot, "docs/incidents/one.yaml", INCIDENT)
        write(bot, "docs/incidents/two.yaml", INCIDENT.replace("Checkout", "Search"))
        answer = await bot.call("respond_render_output")
        assert {each["path"] for each in answer["data"]["files"]} == {
            "docs/pages/one.md", "docs/pages/two.md", "docs/list.md",
            *(f"docs/tasks/{stem}-{task}.md" for stem in ("one", "two") for task in ("A1", "A2")),
        }  # fmt: skip
        assert read(bot, "docs/list.md") == "- [Checkout is down](one.md)\n- [Search is down](two.md)\n"
        assert read(bot, "docs/tasks/two-A1.md") == "# Roll back\n\nOf Search is down\n"
        validated = await bot.call("respond_validate_rules")
        places = {(each["file"], each["line"]) for each in validated["data"]["instructions"]["violations"]}
        assert places == {("docs/incidents/one.yaml", 11), ("docs/incidents/two.yaml", 11)}
        write(bot, "docs/pages/two.md", read(bot, "docs/pages/two.md").replace("(TBD)", "(Lin)"))
        await bot.call("respond_synchronize_output")
        assert "owner: Lin" in read(bot, "docs/incidents/two.yaml")
        other = await bot.call("respond_validate_rules", run="b")
        assert other["data"]["documents"] == {"docs/incidents/runs/b/*.yaml": "missing"}


async def test_a_markdown_document_is_held_to_the_sections_of_its_template(tmp_path: Path) -> None:
    changes = {
        f"{BUILD}/build_review.json": {"name": "review", "output": "docs/review.md", "template": "review.md"},
        f"{BUILD}/review.md": "# <Title>\n\n## Impact\n\n## Causes\n\n### <One for each>\n",
        "behaviors/1_respond/3_rules/causes.json": {
            "description": "A cause is no person.",
            "scanner": {
                "kind": "regex", "applies_to": "$.sections[?@.heading=='Causes'].items[*].text", "document": "review",
                "pattern": "forgot",
            },
            "do": {"examples": ["The check was off"]},
            "dont": {"examples": ["Ada forgot"]},
        },
    }  # fmt: skip
    async with incident(tmp_path, changes) as bot:
        write(bot, "docs/incident.yaml", INCIDENT.replace("TBD", "Ada"))
        write(bot, "docs/review.md", "# Down\n\n## Causes\n\n- No alarm\n- Lin forgot the check\n")
        answer = await bot.call("respond_validate_rules")
    found = {(each["rule"], each["line"]) for each in answer["data"]["instructions"]["violations"]}
    assert found == {("markdown", 1)}
    async with served(bot.project, bot=tmp_path / "bot", name="incident_bot") as bot:
        write(bot, "docs/review.md", "# Down\n\n## Impact\n\n## Causes\n\n- No alarm\n- Lin forgot the check\n")
        answer = await bot.call("respond_validate_rules")
    assert [(each["rule"], each["line"]) for each in answer["data"]["instructions"]["violations"]] == [("causes", 8)]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"type": "yml", "template": "incident.yaml"}, "Did you mean `yaml`?"),
        ({"output": "incident.toml", "template": "incident.yaml"}, "format of"),
        ({"schema": "incident.yaml"}, "not a JSON Schema"),
        ({"output": "a*/b*.yaml", "template": "incident.yaml"}, "only one"),
        ({}, "`template`, `schema` or both"),
    ],
)
def test_a_document_that_cannot_be_is_refused(tmp_path: Path, config: dict[str, Any], says: str) -> None:
    base = {"name": "incident", "output": "incident.yaml"}
    schema = {"type": "strange"}
    changes = {f"{BUILD}/build_incident.json": {**base, **config}, f"{BUILD}/bad.json": schema}
    if config.get("schema"):
        changes[f"{BUILD}/build_incident.json"]["schema"] = "bad.json"
    with pytest.raises(ConfigurationError) as refused:
        load_bot(write_incident_bot(tmp_path, changes))
    assert says in f"{refused.value} {refused.value.__dict__}"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text(alphabet="abc: #-'\"", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcd", min_size=1), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@MANY
@given(VALUES, st.sampled_from([None, 2]))
def test_json_read_as_yaml_has_the_same_value_and_lines(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    found = read_yaml(text)
    assert found.value == value
    lines = line_numbers(text)
    assert all(lines[at] == line for at, line in found.lines.items())


NAMES = st.lists(st.text("abcdef", min_size=3, max_size=8), min_size=1, max_size=5, unique=True)
TEMPLATE = "# {{title}}\n\n{{#items}}\n- [{{#done}}x{{/done}}{{^done}} {{/done}}] {{name}}: {{owner}}\n{{/items}}\n"


@st.composite
def lists(draw: st.DrawFn) -> dict[str, Any]:
    owners = st.sampled_from(["Ada", "Lin", "Grace"])
    items = [{"name": name, "done": draw(st.booleans()), "owner": draw(owners)} for name in draw(NAMES)]
    return {"title": draw(st.sampled_from(["One", "Two"])), "items": items}


@MANY
@given(lists(), lists())
def test_a_page_that_was_edited_into_another_document_makes_that_document(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    page = render_template(TEMPLATE, after)
    done = synchronize(before, TEMPLATE, page, kind=DocumentType(), confirm_deletion=True)
    assert (done.conflicts, done.value) == ((), after)
    assert bool(done.changes) == (before != after)


@MANY
@given(lists(), lists())
def test_an_edit_of_the_document_and_the_same_place_of_its_page_is_a_conflict_and_loses_nothing(
    basis: dict[str, Any], document: dict[str, Any]
) -> None:
    page = render_template(TEMPLATE, basis)
    edited = page.replace(f"# {basis['title']}", "# Third")
    done = synchronize(document, TEMPLATE, edited, kind=DocumentType(), rendered=page, confirm_deletion=True)
    assert done.value["items"] == document["items"]
    if document["title"] == basis["title"]:
        assert done.value["title"] == "Third"
    else:
        assert done.conflicts
        assert done.value["title"] == document["title"]


def test_places_of_a_template_that_cannot_be_read_back_are_named() -> None:
    template = "# {{title}}\n\n{{{impact}}}\n\n{{first}}{{second}}\n\nBy {{#users}}{{.}}, {{/users}}\n"
    assert [(each.line, each.name) for each in not_carried(template)] == [(3, "impact"), (5, "second"), (7, "users")]
    assert not_carried(PAGE.replace("{{>actions}}\n", "")) == []


def test_a_page_of_html_escapes_values_and_inserts_three_braces_as_they_are() -> None:
    made = render_template("{{a}} {{{a}}} {{&a}}", {"a": "<b>&</b>"}, html=True)
    assert made == "&lt;b&gt;&amp;&lt;/b&gt; <b>&</b> <b>&</b>\n"


@pytest.mark.parametrize(
    "text", ["a: &x 1\nb: *x", "a: 1\na: 2", "? [a]\n: 1", "a: !!python/name:os.system", "a: [", "a: .nan"]
)
def test_yaml_that_json_cannot_say_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(DocumentError) as refused:
        parse("yaml", text)
    assert refused.value.line >= 1


@MANY
@given(
    st.lists(st.text(max_size=200) | st.booleans() | st.integers() | st.none(), min_size=1, max_size=4),
    st.lists(st.text(max_size=200) | st.booleans() | st.integers() | st.none(), min_size=1, max_size=4),
)
def test_values_are_replaced_in_a_yaml_text_and_its_comments_stay(before: list[Any], after: list[Any]) -> None:
    names = [f"key_{number}" for number in range(min(len(before), len(after)))]
    old, new = dict(zip(names, before, strict=False)), dict(zip(names, after, strict=False))
    text = "# On top.\n" + "".join(f"{name}: {as_scalar(value)}\n# Below {name}.\n" for name, value in old.items())
    assert parse("yaml", text) == old
    changed = dump("yaml", new, text)
    assert parse("yaml", changed) == new
    assert changed.count("\n# Below") == len(names)


def test_markdown_is_read_as_sections_with_items_and_lines() -> None:
    found = read_markdown("---\nkind: note\n---\n# T\n\nHi\n\n## A\n\n- [x] one\n- [ ] two\n```\n# no\n```\n")
    assert found.value["front_matter"] == {"kind": "note"}
    assert (found.value["title"], found.value["text"]) == ("T", "Hi")
    (section,) = found.value["sections"]
    assert section["items"] == [{"text": "one", "done": True}, {"text": "two", "done": False}]
    assert (found.lines["sections", 0], found.lines["sections", 0, "items", 1]) == (8, 11)
    assert found.lines["front_matter", "kind"] == 2
