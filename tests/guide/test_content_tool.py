"""get_content: what a model sees of an answer, and what it can ask for."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from tests.guide.opened import ask, opened, write_guide
from trysquare import CallContext, Principal
from trysquare.core.cache import MemoryHandles
from trysquare.guide.retrieval import BY_TYPE

CONFLICTING = {
    "rules/tabs.md": "---\ntopic: indentation\nstance: tabs\n---\nIndent with tabs.\n",
    "rules/spaces.md": "---\ntopic: indentation\nstance: spaces\n---\nIndent with spaces.\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    write_guide(root)
    return root


def masked(text: str) -> str:
    """The text with what differs from run to run masked."""
    text = re.sub(r'"holding":"[^"]+"', '"holding":"HANDLE"', text)
    return re.sub(r"@[0-9a-f]{12}", "@DIGEST", text)


async def test_an_answer_has_the_text_first_and_then_what_to_do_with_it(project: Path) -> None:
    async with opened(project) as app:
        result = await ask(app, "get_content", expression="lang/python, docs")
    body, _, rest = masked(result.to_text()).partition("\n{")
    assert body.split("\n\n") == [
        "<!-- lang/python -->",
        "Use four spaces.",
        "<!-- docs/api -->",
        "The API speaks JSON.",
    ]
    fields, instruction = rest.splitlines()
    assert json.loads("{" + fields) == {
        "project": "shop",
        "documents": [
            {
                "id": "lang/python",
                "type": "agent/instruction",
                "tokens": 4,
                "title": "Python",
                "instruction_id": "shop:lang/python@DIGEST",
                "instruction": BY_TYPE["agent/instruction"],
            },
            {
                "id": "docs/api",
                "type": "agent/information",
                "tokens": 6,
                "instruction_id": "shop:docs/api@DIGEST",
                "instruction": BY_TYPE["agent/information"],
            },
        ],
        "holding": "HANDLE",
    }
    assert "`instruction`" in instruction


async def test_an_instruction_that_all_documents_share_is_sent_once(project: Path) -> None:
    async with opened(project) as app:
        result = await ask(app, "get_content", expression="lang")
    assert result.instruction == BY_TYPE["agent/instruction"]
    assert all("instruction" not in each for each in result.fields["documents"])
    assert result.to_text().count(BY_TYPE["agent/instruction"]) == 1


async def test_what_a_caller_holds_is_not_sent_again_until_it_changes(project: Path) -> None:
    context = CallContext()
    async with opened(project) as app:
        first = await ask(app, "get_content", expression="lang/python", context=context)
        both = await ask(app, "get_content", expression="lang", holding=first.fields["holding"], context=context)
        again = await ask(app, "get_content", expression="lang", holding=both.fields["holding"], context=context)
        (project / "docs/guide/lang/rust.md").write_text("Run clippy.\n", encoding="utf-8")
        changed = await ask(app, "get_content", expression="lang", holding=again.fields["holding"], context=context)
    assert (both.value, both.fields["unchanged"]) == ("Run cargo fmt.", ["lang/python"])
    assert again.value is None
    assert again.fields["unchanged"] == ["lang/python", "lang/rust"]
    assert (changed.value, changed.fields["unchanged"]) == ("Run clippy.", ["lang/python"])


async def test_a_caller_can_name_the_instructions_that_it_holds(project: Path) -> None:
    async with opened(project) as app:
        first = await ask(app, "get_content", expression="lang/python")
        known = [each["instruction_id"] for each in first.fields["documents"]]
        second = await ask(app, "get_content", expression="lang", held=known)
    assert (second.value, second.fields["unchanged"]) == ("Run cargo fmt.", ["lang/python"])


async def test_a_changed_instruction_is_sent_again_though_the_text_is_the_same(project: Path) -> None:
    context = CallContext()
    async with opened(project) as app:
        first = await ask(app, "get_content", expression="docs", context=context)
        (project / "docs/guide/docs/api.md").write_text("The API speaks JSON.\n", encoding="utf-8")
        second = await ask(app, "get_content", expression="docs", holding=first.fields["holding"], context=context)
    assert second.value == "The API speaks JSON."
    assert second.instruction == BY_TYPE["agent/instruction"]


async def test_a_handle_that_is_not_the_callers_hides_nothing_and_tells_nothing(project: Path) -> None:
    handles = MemoryHandles()
    mine, theirs = (CallContext(principal=Principal(subject=name), handles=handles) for name in ("ada", "eve"))
    async with opened(project) as app:
        first = await ask(app, "get_content", expression="lang", context=mine)
        stolen = await ask(app, "get_content", expression="lang", holding=first.fields["holding"], context=theirs)
        unknown = await ask(app, "get_content", expression="lang", holding="never-given", context=theirs)
    assert stolen.value == unknown.value == first.value
    assert stolen.warnings == unknown.warnings
    assert "holding" in stolen.warnings[0]


async def test_a_budget_sends_whole_documents_by_priority_and_lists_the_rest(project: Path) -> None:
    async with opened(project) as app:
        result = await ask(app, "get_content", expression="docs,lang,rules", budget=12)
        assert result.next is not None
        rest = await ask(app, "get_content", **result.next["arguments"])
    assert [each["id"] for each in result.fields["documents"]] == ["docs/api", "rules/tests"]
    assert result.fields["left_out"] == snapshot([{"id": "lang/python", "tokens": 4}, {"id": "lang/rust", "tokens": 4}])
    assert result.next["tool"] == "guide_get_content"
    assert rest.value == "Use four spaces."
    assert sum(each["tokens"] for each in result.fields["documents"]) <= 12


async def test_a_long_rest_is_listed_in_part_and_counted(project: Path) -> None:
    write_guide(project, {f"many/{number}.md": f"Document {number}.\n" for number in range(60)})
    async with opened(project) as app:
        result = await ask(app, "get_content", expression="many", budget=0)
    assert (len(result.fields["left_out"]), result.fields["left_out_more"]) == (50, 10)


async def test_a_budget_that_nothing_fits_says_so(project: Path) -> None:
    async with opened(project) as app:
        result = await ask(app, "get_content", expression="lang", budget=0)
    assert (result.success, result.value) == (True, None)
    assert "budget" in (result.message or "")
    assert len(result.fields["left_out"]) == 2


async def test_the_flag_sets_the_budget_of_calls_that_name_none(project: Path) -> None:
    async with opened(project) as app:
        await ask(app, "set_project_flag", name="content-budget", value=4)
        bounded = await ask(app, "get_content", expression="lang")
        named = await ask(app, "get_content", expression="lang", budget=1000)
    assert bounded.value == "Use four spaces."
    assert "left_out" not in named.fields


async def test_explain_tells_which_why_and_how_many_tokens_without_any_text(project: Path) -> None:
    async with opened(project) as app:
        result = await ask(app, "get_content", expression="#backend,rules,-lang/rust", explain=True)
    assert result.value == snapshot(
        {
            "documents": [
                {
                    "id": "lang/python",
                    "type": "agent/instruction",
                    "tokens": 4,
                    "title": "Python",
                    "because": "#backend",
                    "source": "lang/python.md",
                    "would_be": "sent",
                },
                {
                    "id": "rules/tests",
                    "type": "agent/requirements",
                    "tokens": 6,
                    "because": "rules",
                    "source": "rules/tests.md",
                    "would_be": "sent",
                },
            ],
            "tokens": 10,
            "excluded": [{"id": "lang/rust", "because": "-lang/rust"}],
            "hidden": [{"document": "rules/tickets", "reason": "requires-workflow: true"}],
        }
    )
    assert result.fields == {"project": "shop"}


async def test_a_flag_shows_a_document_that_asks_for_it(project: Path) -> None:
    async with opened(project) as app:
        without = await ask(app, "get_content", expression="rules")
        only = await ask(app, "get_content", expression="rules/tickets")
        await ask(app, "set_project_flag", name="workflow", value=True)
        shown = await ask(app, "get_content", expression="rules/tickets")
    assert without.fields["hidden"][0]["document"] == "rules/tickets"
    assert (only.success, only.code) == (False, "RESOURCE_NOT_FOUND")
    assert shown.value == "Open a ticket first."


async def test_documents_that_contradict_one_another_are_reported_with_both_places(project: Path) -> None:
    write_guide(project, CONFLICTING)
    async with opened(project) as app:
        result = await ask(app, "get_content", expression="rules/tabs+spaces")
        await ask(app, "set_project_flag", name="report-conflicts", value=False)
        silent = await ask(app, "get_content", expression="rules/tabs+spaces")
    [conflict] = result.fields["conflicts"]
    assert {place["document"] for place in conflict["places"]} == {"rules/tabs", "rules/spaces"}
    assert "conflicts" in str(result.instruction)
    assert "conflicts" not in silent.fields


@pytest.mark.parametrize(
    ("expression", "nearest"),
    [
        ("lang/pyton", "`python`"),
        ("lnag", "`lang`"),
        ("lang/../../*", "Nothing matches"),
        ("", "empty"),
        ("-lang", "only excludes"),
    ],
)
async def test_no_match_is_a_failure_that_helps(project: Path, expression: str, nearest: str) -> None:
    async with opened(project) as app:
        result = await ask(app, "get_content", expression=expression)
    assert not result.success
    assert nearest in str(result.error)


@pytest.mark.parametrize("name", ["c++", "a, b", "x & y", "list[int]", "star*", "notes.md"])
async def test_a_document_of_any_name_can_be_fetched_by_what_an_answer_says(project: Path, name: str) -> None:
    write_guide(project, {f"odd/{name}.md": f"About {name}, the odd one.\n"})
    async with opened(project) as app:
        left = await ask(app, "get_content", expression="odd", budget=0)
        assert left.next is not None
        fetched = await ask(app, "get_content", **left.next["arguments"])
        found = await ask(app, "search_content", query="odd one")
        assert found.next is not None
        searched = await ask(app, "get_content", **found.next["arguments"])
    assert fetched.value == searched.value == f"About {name}, the odd one."


@pytest.mark.parametrize(
    ("more", "name"),
    [({}, "guide_get_content"), ({"prefix": "team"}, "team_get_content"), ({"prefix": ""}, "get_content")],
)
async def test_names_in_answers_are_those_that_the_caller_knows(project: Path, more: dict[str, Any], name: str) -> None:
    async with opened(project, **more) as app:
        prefix = name.removesuffix("get_content")
        tool = app.toolset.find(name)
        assert tool is not None
        left = await tool.call({"expression": "lang", "budget": 0}, CallContext())
        search = app.toolset.find(f"{prefix}search_content")
        assert search is not None
        found = await search.call({"query": "cargo"}, CallContext())
        for following in (left.next, found.next):
            assert following is not None
            assert following["tool"] == name


async def test_what_a_flag_hides_is_hidden_in_an_include_too(project: Path) -> None:
    text = "---\ntemplate: true\nincludes: [rules/tickets]\n---\nBegin. {% include 'rules/tickets' %}\n"
    write_guide(project, {"rules/first.md": text})
    async with opened(project) as app:
        before = await ask(app, "get_content", expression="rules/first")
        await ask(app, "set_project_flag", name="workflow", value=True)
        after = await ask(app, "get_content", expression="rules/first")
    assert "ticket" not in str(before.value)
    assert "Open a ticket first." in str(after.value)


async def test_one_of_several_patterns_that_matches_nothing_is_a_warning(project: Path) -> None:
    async with opened(project) as app:
        result = await ask(app, "get_content", expression="lang/python+nope")
    assert result.success
    assert any("`nope`" in warning for warning in result.warnings)


async def test_a_file_that_cannot_be_read_is_named_where_it_is_asked_for(project: Path) -> None:
    (project / "docs/guide/lang/zig.md").write_bytes(b"\xff\xfe")
    async with opened(project) as app:
        result = await ask(app, "get_content", expression="lang/zig")
    assert result.code == "RESOURCE_NOT_FOUND"
    assert "lang/zig.md" in str(result.error)


async def test_a_preset_that_is_not_there_and_a_document_that_is_too_long_are_refused(project: Path) -> None:
    async with opened(project) as app:
        preset = await ask(app, "set_project_flag", name="preset", value="nope")
        long = await ask(app, "set_document", id="lang/long", text="x" * 1_200_000)
    assert preset.code == "RESOURCE_NOT_FOUND"
    assert long.code == "VALIDATION_INVALID_PARAM"
