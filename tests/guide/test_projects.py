"""Projects: a call names one or gets the default, every answer says which, and nothing passes between them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from tests.guide.opened import agreeing, ask, opened, told, write_guide
from trysquare import CallContext, Principal
from trysquare.app import App
from trysquare.core.cache import MemoryHandles

SHOP = {"rules/style.md": "Shop: write short sentences.\n", "rules/money.md": "Shop: count in cents.\n"}
BANK = {
    "rules/style.md": "---\ninstruction: Bank only.\n---\nBank: write formal sentences.\n",
    "rules/money.md": "Shop: count in cents.\n",
}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncGenerator[App]:
    """A server that was started in `shop`, and knows `bank` too."""
    write_guide(tmp_path / "shop", SHOP)
    write_guide(tmp_path / "bank", BANK)
    async with opened(tmp_path / "shop") as app:
        added = await ask(app, "set_project", name="bank", root=str(tmp_path / "bank"), context=agreeing())
        assert added.success, added.error
        yield app


async def test_a_call_gets_the_project_that_it_names_and_else_the_default_every_time(app: App) -> None:
    for _ in range(3):
        other = await ask(app, "get_content", expression="rules/style", project="bank")
        default = await ask(app, "get_content", expression="rules/style")
        assert (other.value, other.fields["project"]) == ("Bank: write formal sentences.", "bank")
        assert (default.value, default.fields["project"]) == ("Shop: write short sentences.", "shop")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_content", {"expression": "rules"}),
        ("get_content", {"expression": "rules", "explain": True}),
        ("search_content", {"query": "sentences"}),
        ("search_content", {"query": "nothing holds this"}),
        ("list_content", {}),
        ("list_project_flags", {}),
        ("get_project_flag", {"name": "workflow"}),
        ("set_project_flag", {"name": "workflow", "value": True}),
        ("set_document", {"id": "rules/new", "text": "New."}),
        ("set_category", {"name": "rules", "description": "All rules"}),
        ("set_collection", {"name": "all", "expressions": ["rules"]}),
        ("set_preset", {"name": "strict", "flags": {"workflow": True}}),
    ],
)
async def test_every_answer_names_its_project(app: App, tool: str, arguments: dict[str, Any]) -> None:
    assert (await ask(app, tool, **arguments, project="bank")).fields["project"] == "bank"
    assert (await ask(app, tool, **arguments)).fields["project"] == "shop"


async def test_flags_and_stored_documents_stay_in_their_project(app: App) -> None:
    await ask(app, "set_project_flag", name="workflow", value=True, project="bank")
    await ask(app, "set_document", id="rules/secret", text="Bank only.", project="bank")
    assert (await told(app, "get_project_flag", name="workflow"))["source"] == "unset"
    assert not (await ask(app, "get_content", expression="rules/secret")).success
    assert (await told(app, "get_content", expression="rules/secret", project="bank")).endswith("\n\nBank only.")


async def test_a_feature_flag_holds_in_all_projects_until_one_sets_its_own(app: App) -> None:
    await ask(app, "set_feature_flag", name="workflow", value="ours")
    await ask(app, "set_project_flag", name="workflow", value="theirs", project="bank")
    here = await told(app, "get_project_flag", name="workflow")
    there = await told(app, "get_project_flag", name="workflow", project="bank")
    assert (here["value"], here["source"]) == ("ours", "feature")
    assert (there["value"], there["source"]) == ("theirs", "project")
    assert (await told(app, "list_feature_flags")) == {"workflow": "ours"}


async def test_what_was_sent_in_one_project_does_not_count_as_sent_in_another(app: App) -> None:
    """The money rule reads the same in both projects; holding one is not holding the other."""
    context = CallContext()
    shop = await ask(app, "get_content", expression="rules/money", context=context)
    holding = shop.fields["holding"]
    bank = await ask(app, "get_content", expression="rules/money", project="bank", holding=holding, context=context)
    assert bank.value == shop.value
    assert [each["instruction_id"].partition(":")[0] for each in bank.fields["documents"]] == ["bank"]


async def test_instructions_of_two_clients_and_two_projects_never_mix(app: App) -> None:
    handles = MemoryHandles()
    callers = {
        (name, project): CallContext(principal=Principal(subject=name), handles=handles)
        for name in ("ada", "bob")
        for project in ("shop", "bank")
    }

    async def talk(project: str, context: CallContext) -> list[str]:
        holding: str | None = None
        ids: list[str] = []
        for expression in ("rules/style", "rules/money", "rules", "rules"):
            result = await ask(
                app, "get_content", expression=expression, project=project, holding=holding, context=context
            )
            holding = result.fields["holding"]
            ids += [each["instruction_id"] for each in result.fields.get("documents", ())]
            assert result.fields["project"] == project
            assert ("Bank only." in str(result.to_json())) == (project == "bank" and "style" in expression)
        return ids

    answers = await asyncio.gather(*(talk(project, context) for (_, project), context in callers.items()))
    for (_, project), ids in zip(callers, answers, strict=True):
        # Each client was told each document once, and only of the project that it asked for.
        assert len(ids) == len(set(ids)) == 2
        assert all(each.startswith(f"{project}:rules/") for each in ids)


async def test_an_unknown_project_is_refused_with_the_nearest_names(app: App) -> None:
    result = await ask(app, "get_content", expression="rules", project="bnak")
    assert (result.success, result.code) == (False, "RESOURCE_NOT_FOUND")
    assert "`bank`" in str(result.error)


async def test_a_project_is_registered_with_consent_only_and_only_inside_its_root(tmp_path: Path, app: App) -> None:
    root = str(tmp_path / "bank")
    unasked = await ask(app, "set_project", name="third", root=root)
    assert unasked.code == "CONSENT_REQUIRED"
    outside = await ask(app, "set_project", name="third", root=root, content=["../shop"], context=agreeing())
    relative = await ask(app, "set_project", name="third", root="bank", context=agreeing())
    own = await ask(app, "set_project", name="Shop", root=root, context=agreeing())
    assert [each.code for each in (outside, relative, own)] == ["VALIDATION_INVALID_PARAM"] * 3
    listed = await told(app, "list_content", kind="projects")
    assert [each["name"] for each in listed] == ["shop", "bank"]


async def test_a_project_whose_content_cannot_be_read_is_not_registered(tmp_path: Path, app: App) -> None:
    folder = write_guide(tmp_path / "broken", SHOP)
    (folder / "guide.json").write_text("{", encoding="utf-8")
    result = await ask(app, "set_project", name="broken", root=str(tmp_path / "broken"), context=agreeing())
    assert not result.success
    assert "guide.json:1" in str(result.error)
    listed = await told(app, "list_content", kind="projects")
    assert [each["name"] for each in listed] == ["shop", "bank"]


async def test_a_removed_project_is_gone_and_its_files_stay(tmp_path: Path, app: App) -> None:
    await ask(app, "get_content", expression="rules", project="bank")
    removed = await ask(app, "remove_content", kind="project", name="bank", context=agreeing())
    assert removed.success, removed.error
    assert not (await ask(app, "get_content", expression="rules", project="bank")).success
    assert (tmp_path / "bank/docs/guide/rules/style.md").exists()


async def test_the_register_outlives_the_server(tmp_path: Path, app: App) -> None:
    async with opened(tmp_path / "shop") as later:
        result = await ask(later, "get_content", expression="rules/style", project="bank")
    assert result.fields["project"] == "bank"
