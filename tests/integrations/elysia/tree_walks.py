"""A program for Elysia's environment: real trees, a scripted decision model, and the adapter before a real gateway.

    python tree_walks.py ADAPTER SETTING

SETTING is a JSON file with `command`, `env`, `url` and `config` of the gateway. The program prints one JSON object:
what came of each walk, by its name.
"""

# This runs where Elysia is, which is not where types are checked.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dspy.utils import DummyLM
from elysia import Settings, Tree
from elysia.tools.text.text import FakeTextResponse

WALKS: dict[str, Callable[..., Any]] = {}


def load_adapter(path: str) -> Any:
    """The adapter as one who copied the file has it: under another name, with nothing of ours around it."""
    spec = importlib.util.spec_from_file_location("copied_gateway", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def walk(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enlist a walk."""
    WALKS[function.__name__] = function
    return function


def decide(tool: str, inputs: dict[str, Any], *, ends: bool = False) -> dict[str, Any]:
    """One decision of the model."""
    made = {"function_name": tool, "function_inputs": json.dumps(inputs), "end_actions": str(ends)}
    return {"reasoning": "It fits.", "message_update": "Going on.", "impossible": "False", **made}


def execute(tool: str, name: str, inputs: Any) -> dict[str, Any]:
    """The decision to run a tool behind a gateway tool."""
    return decide(tool, {"action": "execute", "tool_name": name, "tool_inputs": inputs})


def planted(tools: list[Any], *decisions: dict[str, Any]) -> Any:
    """A tree with some tools, and a model that decides as told and ends with a text."""
    settings = Settings()
    settings.configure(
        base_model="dummy", base_provider="openai", complex_model="dummy", complex_provider="openai"
    )  # fmt: skip
    settings.WCD_URL = ""
    tree = Tree(branch_initialisation="empty", settings=settings, use_elysia_collections=False)
    for tool in (*tools, FakeTextResponse):
        tree.add_tool(tool)
    tree._base_lm = tree._complex_lm = DummyLM([*decisions, decide("text_response", {"text": "Done."}, ends=True)])
    return tree


async def walked(tree: Any) -> dict[str, Any]:
    """What a tree yields on its way, and what it remembers."""
    yielded = [step async for step in tree.async_run("Do it.") if step is not None]
    kept = tree.tree_data.environment
    return {
        "types": [step["type"] for step in yielded],
        "results": [step["payload"]["objects"] for step in yielded if step["type"] == "result"],
        "texts": [
            each.get("text") for step in yielded if step["type"] == "text" for each in step["payload"]["objects"]
        ],
        "errors": [step["payload"] for step in yielded if step["type"] == "self_healing_error"],
        "tasks": json.dumps(tree.tree_data.tasks_completed),
        "remembered": {name: kept.environment[name] for name in kept.environment if name != "SelfInfo"},
        "hidden": kept.hidden_environment,
        "prompts": [json.dumps(call["messages"]) for call in tree._base_lm.history],
    }


def one(gateway: Any, name: str) -> list[Any]:
    """The class of one tool."""
    return [tool for tool in gateway.tools() if tool.get_metadata()["name"] == name]


@walk
async def a_real_server(gateway: Any, **_: Any) -> Any:
    entity = {"name": "Trysquare", "entityType": "tool", "observations": ["squares things up"]}
    return await walked(
        planted(
            one(gateway, "mcp_memory"),
            decide("mcp_memory", {}),
            execute("mcp_memory", "create_entities", {"entities": [entity]}),
            execute("mcp_memory", "search_nodes", {"query": "Trysquare"}),
        )
    )


@walk
async def one_server_by_its_name(gateway: Any, adapter: Any, **_: Any) -> Any:
    tools = [adapter.MCPTool(server_name=name, gateway=gateway) for name in ("toy", "mcp_scripted")]
    with contextlib.suppress(adapter.GatewayError):
        adapter.MCPTool(server_name="nobody", gateway=gateway)
        raise AssertionError("a server that is not there")
    walk = await walked(planted(tools, execute("mcp_toy", "echo", {"text": "hello"})))
    return {**walk, "names": [tool.name for tool in tools]}


@walk
async def a_tree_with_its_servers(gateway: Any, adapter: Any, **_: Any) -> Any:
    trees = [
        adapter.Tree(branch_initialisation=kind, gateway=gateway, use_elysia_collections=False)
        for kind in ("default", "empty", "multi_branch")
    ]
    trees[0].set_branch_initialisation("empty")
    return {"tools": [sorted(name for name in tree.tools if name.startswith("mcp_")) for tree in trees],
            "is_elysia": all(isinstance(tree, Tree) for tree in trees)}  # fmt: skip


@walk
async def a_value_alone(gateway: Any, **_: Any) -> Any:
    return await walked(planted(one(gateway, "mcp_scripted"), execute("mcp_scripted", "set", {"value": 7})))


@walk
async def a_value_and_more(gateway: Any, **_: Any) -> Any:
    inputs = {"key": "a", "value": 7}
    return await walked(
        planted(
            one(gateway, "mcp_scripted"),
            execute("mcp_scripted", "put", inputs),
            execute("mcp_scripted", "put", json.dumps(inputs)),
        )
    )


@walk
async def a_slip_in_a_name(gateway: Any, **_: Any) -> Any:
    return await walked(planted(one(gateway, "mcp_scripted"), execute("mcp_scripted", "stet", {"a": "{b} [/c]"})))


@walk
async def words_that_look_like_markup(gateway: Any, **_: Any) -> Any:
    shout = {"text": "{nobody} [/bold] [/tmp]"}
    return await walked(
        planted(one(gateway, "mcp_toy"), execute("mcp_toy", "echo", shout), execute("mcp_toy", "[/x]", {}))
    )


@walk
async def a_failure_of_the_tool(gateway: Any, **_: Any) -> Any:
    return await walked(planted(one(gateway, "mcp_toy"), execute("mcp_toy", "fail", {})))


@walk
async def a_server_that_dies(gateway: Any, **_: Any) -> Any:
    return await walked(planted(one(gateway, "mcp_toy"), execute("mcp_toy", "kill", {})))


@walk
async def a_server_that_cannot_be_used(gateway: Any, **_: Any) -> Any:
    return await walked(planted(one(gateway, "mcp_broken"), decide("mcp_broken", {})))


@walk
async def many_rows(gateway: Any, **_: Any) -> Any:
    return await walked(planted(one(gateway, "mcp_scripted"), execute("mcp_scripted", "rows", {"count": 400})))


@walk
async def a_picture(gateway: Any, **_: Any) -> Any:
    return await walked(planted(one(gateway, "mcp_everything"), execute("mcp_everything", "get-tiny-image", {})))


@walk
async def over_http(elsewhere: Any, **_: Any) -> Any:
    return await walked(planted(one(elsewhere, "mcp_toy"), execute("mcp_toy", "echo", {"text": "Hello."})))


@walk
async def what_a_class_says(gateway: Any, **_: Any) -> Any:
    return [json.loads(json.dumps(tool.get_metadata())) for tool in gateway.tools()]


@walk
async def inputs_are_nobody_elses(gateway: Any, **_: Any) -> Any:
    (tool,) = one(gateway, "mcp_toy")
    first, second = tool(), tool()
    first.inputs["action"]["default"] = ["changed"]
    first.get_default_inputs()["action"].append("again")
    return [first.get_default_inputs(), second.get_default_inputs()]


def without(config: str, server: str) -> None:
    """Take a server out of the configuration."""
    servers = json.loads(Path(config).read_text(encoding="utf-8"))
    del servers["mcpServers"][server]
    Path(config).write_text(json.dumps(servers), encoding="utf-8")


@walk
async def a_tool_that_went_away(gateway: Any, config: str, adapter: Any, **_: Any) -> Any:
    tree = planted(one(gateway, "mcp_leaving"))
    leaving = tree.tools["mcp_leaving"]
    before = await leaving.is_tool_available()
    adapter._FRESH = 0.0
    without(config, "leaving")
    async with asyncio.timeout(60):
        while await leaving.is_tool_available():
            pass
    return [before, await walked(tree)]


@walk
def a_tree_that_is_called_twice(gateway: Any, **_: Any) -> Any:
    """Each of these calls makes an event loop of its own."""
    said: list[Any] = []
    for text in ("one", "two"):
        tree = planted(one(gateway, "mcp_toy"), execute("mcp_toy", "echo", {"text": text}))
        said.append(tree("Do it.")[1][0][0]["text"])
    return said


def came_of(function: Callable[..., Any], **world: Any) -> dict[str, Any]:
    """What came of a walk, or how it failed."""
    try:
        made = function(**world)
        return {"came": asyncio.run(made) if asyncio.iscoroutine(made) else made}
    except Exception:  # noqa: BLE001, one walk that fails must not hide what came of the others
        return {"failed": traceback.format_exc()}


def main() -> None:
    """Walk all walks, the one that changes the configuration last."""
    adapter, setting = load_adapter(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    with (
        contextlib.redirect_stdout(sys.stderr),
        adapter.Gateway(command=setting["command"], env=setting["env"]) as gateway,
        adapter.Gateway(url=setting["url"]) as elsewhere,
    ):
        world = {"gateway": gateway, "elsewhere": elsewhere, "config": setting["config"], "adapter": adapter}
        order = sorted(WALKS, key=lambda name: name == "a_tool_that_went_away")
        came = {name: came_of(WALKS[name], **world) for name in order}
    came["modules"] = {"came": sorted(name for name in sys.modules if name.split(".")[0] == "trysquare")}
    sys.stdout.write(json.dumps(came))


if __name__ == "__main__":
    main()
