"""Real Elysia trees, in an environment of their own, with our gateway's tools and a scripted decision model."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.elysia.served import ADAPTER, REPOSITORY, served_over_http, write_servers, write_setting
from tests.support import missing_component

PYTHON = REPOSITORY / ".venv-elysia" / "bin" / "python"
WALKS = Path(__file__).with_name("tree_walks.py")

# One process walks them all, because it takes Elysia longer to be imported than to do all of this.
pytestmark = [pytest.mark.xdist_group("elysia"), pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if not PYTHON.exists():
        missing_component("Elysia's environment", "run `make elysia`")
    folder = tmp_path_factory.mktemp("elysia")
    here, elsewhere = folder / "here", folder / "elsewhere"
    here.mkdir()
    elsewhere.mkdir()
    config = write_servers(here, with_npm=True)
    with served_over_http(write_servers(elsewhere, with_npm=False)) as url:
        return _walk(write_setting(folder, config, url), folder)


def _walk(setting: Path, folder: Path) -> dict[str, Any]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "TRYSQUARE_"))}
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "DSPY_CACHEDIR": str(folder / "cache")}
    ended = subprocess.run(
        [str(PYTHON), "-W", "ignore", str(WALKS), str(ADAPTER), str(setting)],
        capture_output=True, text=True, timeout=380, check=False, env={**kept, **quiet}, cwd=folder,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout)


def came(walks: dict[str, Any], name: str) -> Any:
    assert "failed" not in walks[name], walks[name]["failed"]
    return walks[name]["came"]


def test_a_tree_lists_executes_and_answers_with_a_real_server(walks: dict[str, Any]) -> None:
    walk = came(walks, "a_real_server")
    assert walk["errors"] == []
    assert walk["types"][-1] == "completed"
    tools, created, found = walk["results"]
    assert "create_entities" in [tool["name"] for tool in tools]
    assert found[0]["entities"][0]["observations"] == ["squares things up"]
    assert list(walk["remembered"]["mcp_memory"]) == ["list", "create_entities", "search_nodes"]
    assert created


def test_a_tree_uses_a_gateway_over_http(walks: dict[str, Any]) -> None:
    walk = came(walks, "over_http")
    assert walk["results"][0][0]["text"] == "Hello."
    assert walk["types"][-1] == "completed"


def test_a_tree_may_be_called_in_one_event_loop_after_another(walks: dict[str, Any]) -> None:
    assert came(walks, "a_tree_that_is_called_twice") == ["one", "two"]


def test_nothing_else_of_us_is_needed_there(walks: dict[str, Any]) -> None:
    assert came(walks, "modules") == []


def test_a_value_that_stands_alone_is_put_back(walks: dict[str, Any]) -> None:
    walk = came(walks, "a_value_alone")
    assert walk["errors"] == []
    assert walk["results"][0][0]["arguments"] == {"value": 7}


def test_a_value_beside_others_is_asked_for_again_as_text_and_never_sent_in_part(walks: dict[str, Any]) -> None:
    walk = came(walks, "a_value_and_more")
    (error,) = walk["errors"]
    assert "send `tool_inputs` as JSON text" in error["feedback"]
    (result,) = walk["results"]
    assert result[0]["arguments"] == {"key": "a", "value": 7}


def test_the_model_is_told_how_to_mend_a_call(walks: dict[str, Any]) -> None:
    walk = came(walks, "a_slip_in_a_name")
    (error,) = walk["errors"]
    assert "`set`" in error["feedback"]
    assert '"tool_name":"set"' in error["feedback"]
    assert "Avoidable error" in walk["prompts"][-1]


def test_what_a_tool_says_went_wrong_is_feedback(walks: dict[str, Any]) -> None:
    (error,) = came(walks, "a_failure_of_the_tool")["errors"]
    assert error == {"feedback": "it failed", "error_message": ""}


def test_what_may_have_been_done_is_no_invitation_to_do_it_again(walks: dict[str, Any]) -> None:
    walk = came(walks, "a_server_that_dies")
    (error,) = walk["errors"]
    assert error["feedback"] == "An unknown issue occurred."
    assert "UPSTREAM_LOST" in error["error_message"]
    assert "outside of your capacity" in walk["prompts"][-1]


def test_what_only_a_person_can_mend_is_told_as_such(walks: dict[str, Any]) -> None:
    (error,) = came(walks, "a_server_that_cannot_be_used")["errors"]
    assert "The entry needs a `command` to start" in error["error_message"]


def test_braces_and_brackets_do_no_harm(walks: dict[str, Any]) -> None:
    walk = came(walks, "words_that_look_like_markup")
    assert walk["results"][0][0]["text"] == "{nobody} [/bold] [/tmp]"
    assert "`[ /x]`" in walk["errors"][0]["feedback"]
    assert walk["types"][-1] == "completed"


def test_a_large_result_leaves_a_handle_and_its_beginning_in_the_prompts(walks: dict[str, Any]) -> None:
    walk = came(walks, "many_rows")
    ((row,),) = walk["results"]
    assert set(row) == {"handle", "bytes", "shape", "head", "_REF_ID"}
    assert 8000 < row["bytes"] < 64 * 1024, "it is this client that wants handles for so little"
    assert len(json.dumps(walk["remembered"])) < 4000
    assert "offset" in walk["tasks"]
    assert row["handle"] in walk["prompts"][-1]


def test_a_picture_is_described_instead_of_shown_to_the_model(walks: dict[str, Any]) -> None:
    walk = came(walks, "a_picture")
    pictures = [row for row in walk["results"][0] if row.get("type") == "image"]
    assert pictures[0]["mimeType"] == "image/png"
    assert pictures[0]["bytes"] > 100
    assert "data" not in pictures[0]


def test_nothing_is_hidden_where_every_tree_of_the_process_would_find_it(walks: dict[str, Any]) -> None:
    assert came(walks, "many_rows")["hidden"] == {}
    assert came(walks, "a_real_server")["hidden"] == {}


def test_a_class_says_what_the_tool_is_before_it_is_made(walks: dict[str, Any]) -> None:
    shown = {tool["name"]: tool for tool in came(walks, "what_a_class_says")}
    assert set(shown) == {"mcp_scripted", "mcp_toy", "mcp_leaving", "mcp_broken", "mcp_memory", "mcp_everything"}
    toy = shown["mcp_toy"]
    assert toy["description"].startswith("MCP server 'toy' (stdio)")
    assert toy["end"] is False
    assert {name: about["type"] for name, about in toy["inputs"].items()} == {
        "action": "str", "tool_name": "str", "tool_inputs": "dict",
    }  # fmt: skip
    assert all(about["description"] for about in toy["inputs"].values())


def test_defaults_are_not_shared(walks: dict[str, Any]) -> None:
    first, second = came(walks, "inputs_are_nobody_elses")
    assert first["action"] == ["changed"]
    assert second["action"] == "list"


def test_a_tool_that_went_away_is_unavailable_and_says_why(walks: dict[str, Any]) -> None:
    before, walk = came(walks, "a_tool_that_went_away")
    assert before is True
    assert "The gateway no longer offers `mcp_leaving`." in walk["prompts"][-1]
    assert walk["types"][-1] == "completed"


def test_one_server_is_added_by_its_name_and_a_plain_answer_is_text(walks: dict[str, Any]) -> None:
    walk = came(walks, "one_server_by_its_name")
    assert walk["names"] == ["mcp_toy", "mcp_scripted"]
    assert walk["results"] == [[{"text": "hello", "_REF_ID": "mcp_toy_echo_0_0"}]]
    assert walk["errors"] == []
    assert "`echo` of mcp_toy answered: hello" in walk["texts"]


def test_the_servers_are_added_when_a_tree_is_initialised(walks: dict[str, Any]) -> None:
    walk = came(walks, "a_tree_with_its_servers")
    assert walk["is_elysia"]
    for names in walk["tools"]:
        assert {"mcp_toy", "mcp_scripted", "mcp_memory"} <= set(names)
