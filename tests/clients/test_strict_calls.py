"""Strict function calling with the tools of our own parts: each can be called with every argument filled in."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.clients.test_clients import OTHER_PYTHON, PROGRAMS, SERVE
from tests.e2e.stdio_process import REPOSITORY
from tests.support import missing_component
from trysquare.core.json import as_object, objects_in

COMMAND = SERVE[:2]
TOYS = {"command": COMMAND[0], "args": [*SERVE[1:]], "cwd": str(REPOSITORY)}
PROGRAM = "python program.py"
RUN = {"target": PROGRAM}
PARTS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "workbench": (
        ["--workbench", "."],
        {
            "file": {"action": "read", "path": "program.py"},
            "code_edit": {"action": "get_lines", "path": "program.py"},
            "search": {"action": "grep", "pattern": "total"},
            "navigate": {"action": "list_directory"},
            "git": {"action": "status"},
            "bash": {"command": "true"},
            "test": {"type": "python"},
        },
    ),
    "guide": (
        ["--guide", str(REPOSITORY / "examples" / "guide")],
        {
            "guide_get_content": {"expression": "docs/guide/guidelines/errors"},
            "guide_search_content": {"query": "errors"},
            "guide_list_content": {},
            "read_more": {"cursor": "none.2"},
        },
    ),
    "bot": (
        ["--bot", str(REPOSITORY / "examples" / "bots" / "release")],
        {
            "release_tool": {},
            "release_close_current_action": {},
            "release_restart_server": {},
            "release_ship_tool": {},
            "release_ship_write_notes": {},
            "release_ship_publish": {},
        },
    ),
    "debugger": (
        ["--debugger"],
        {
            "debug_explain": RUN,
            "debug_trace": {**RUN, "function": "total"},
            "debug_who_wrote": {**RUN, "value": "amount"},
            "debug_probe": {**RUN, "probes": [{"location": "program.py:2"}]},
            "debug_diff": {**RUN, "passing": PROGRAM},
            "debug_dump": {"pid": 1},
            "debug_session_start": {"target": "program.py"},
            "debug_execute": {},
            "debug_step": {},
            "debug_inspect": {},
            "debug_breakpoint": {"action": "list"},
            "debug_watch": {},
            "debug_session": {"action": "list"},
            "debug_run_until": {"location": "program.py:2"},
            "debug_variable": {"name": "amount"},
            "debug_context": {},
            "debug_adapter": {},
            "debug_init": {"language": "python"},
            "debug_config": {},
        },
    ),
    "gateway, levels": (["--gateway", "mcp.json"], {"mcp_toys": {"action": "list"}}),
    "gateway, gateway": (["--gateway", "mcp.json", "--profile", "gateway"], {"mcp": {"action": "list"}}),
}


@pytest.mark.timeout(300)
def test_every_tool_of_our_parts_can_be_called_with_every_argument_filled_in(tmp_path: Path) -> None:
    if not OTHER_PYTHON.exists():
        missing_component("the environment of the clients", "run `make clients`")
    (tmp_path / "program.py").write_text("def total(amount):\n    return amount + 1\n\ntotal(1)\n", encoding="utf-8")
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"toys": TOYS}}), encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    targets = {
        name: {"command": [*COMMAND, *served], "folder": str(tmp_path), "calls": calls}
        for name, (served, calls) in PARTS.items()
    }
    command = [str(OTHER_PYTHON), str(PROGRAMS / "openai_strict.py"), json.dumps(targets)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, cwd=PROGRAMS)
    assert ended.returncode == 0, ended.stderr[-4000:]
    for name, found in json.loads(ended.stdout).items():
        assert sorted(found) == sorted(PARTS[name][1]), name
        for tool, called in found.items():
            assert called["is_strict"] or has_free_form(called["schema"]), (name, tool, called["schema"])
            for shown in called["shown"]:
                assert "VALIDATION_" not in shown, (name, tool, shown)
                assert "INTERNAL_ERROR" not in shown, (name, tool, shown)


def has_free_form(schema: Any) -> bool:
    """Whether a schema has an object of any names, which strict function calling has no form for."""
    return any(
        part.get("type") == "object" and (as_object(part.get("properties")) == {} or part.get("additionalProperties"))
        for part in objects_in([schema])
    )
