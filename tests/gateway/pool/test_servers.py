"""Real servers from npm as processes of ours: listed, called, asked back by, killed and used again."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.real_servers import SERVERS, node
from tests.gateway.toys import Person, called_by, has_ended, hear_nothing
from trysquare import CallContext
from trysquare.gateway import ServerConfig
from trysquare.gateway.models import ConfigLocation
from trysquare.gateway.pool.pool import ServerPool, open_pool
from trysquare.processes.reaper import processes


def real(name: str, *arguments: str, **fields: Any) -> ServerConfig:
    """An entry that starts a server from npm."""
    return ServerConfig(
        name=name,
        tool_name=f"mcp_{name}",
        transport="stdio",
        location=ConfigLocation(file="mcp.json"),
        command=node(),
        args=(str(SERVERS / f"server-{name}" / "dist" / "index.js"), *arguments),
        **fields,
    )


async def structured(
    pool: ServerPool, server: str, tool: str, context: CallContext | None = None, **inputs: Any
) -> Any:
    """The whole result of a call."""
    arguments = json.dumps(inputs).encode()
    answer = await pool.call(server, tool, arguments, context or CallContext(), on_sent=lambda: None)
    return json.loads(answer.body)


async def test_real_servers_serve_and_are_replaced_when_killed(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("remember the milk", encoding="utf-8")
    memory = real("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")})
    servers = {"memory": memory, "filesystem": real("filesystem", str(tmp_path))}
    async with open_pool(servers, on_change=hear_nothing) as pool:
        names = [definition.name for definition in await pool.definitions("memory")]
        assert {"create_entities", "read_graph"} <= set(names)
        entity = {"name": "Ada", "entityType": "person", "observations": ["writes notes"]}
        await structured(pool, "memory", "create_entities", entities=[entity])
        own = os.getpid()
        (pid,) = [entry.pid for entry in processes() if _is_running(entry.pid, "server-memory", own)]
        os.kill(pid, signal.SIGKILL)
        await has_ended(pid)
        graph = await structured(pool, "memory", "read_graph")
        assert [found["name"] for found in graph["structuredContent"]["entities"]] == ["Ada"]
        read = await structured(pool, "filesystem", "read_text_file", path=str(tmp_path / "note.txt"))
        assert read["content"][0]["text"] == "remember the milk"


def _is_running(pid: int, package: str, parent: int) -> bool:
    """Whether a process is a child of ours that runs a package."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return int(stat[stat.rfind(b")") + 2 :].split()[1]) == parent and package.encode() in command


@pytest.mark.parametrize("tool", ["trigger-elicitation-request", "trigger-sampling-request"])
async def test_a_real_server_asks_the_user_and_the_model_behind_the_call(tool: str) -> None:
    person = Person("Ada")
    async with open_pool({"everything": real("everything", "stdio")}, on_change=hear_nothing) as pool:
        inputs = {"prompt": "Say hello."} if "sampling" in tool else {}
        result = await structured(pool, "everything", tool, called_by(person), **inputs)
    assert len(person.questions) == 1
    assert ("Ada" if "elicitation" in tool else "Hello.") in json.dumps(result)


async def test_progress_of_a_real_server_reaches_the_caller() -> None:
    person = Person()
    wanting = called_by(person, meta={"progress_token": "p"})
    async with open_pool({"everything": real("everything", "stdio")}, on_change=hear_nothing) as pool:
        await structured(pool, "everything", "trigger-long-running-operation", wanting, duration=0.1, steps=3)
    assert person.told[-1] == (3.0, 3.0)
