"""Which debugger is used: the one that the setting names by version or path, or an error that says what there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import debugpy
import pytest

from trysquare import call_tool
from trysquare.debug import DebugConfig, open_debugger
from trysquare.debug.adapters.base import package_version
from trysquare.debug.adapters.lldb import PACKAGE
from trysquare.settings import Settings


async def _start(folder: Path, adapters: dict[str, str], **arguments: Any) -> dict[str, Any]:
    async with open_debugger(DebugConfig(root=folder, adapters=adapters)) as toolset:
        return (await call_tool(toolset, "session_start", arguments)).to_json()


async def test_a_version_of_debugpy_that_is_installed_is_used_and_another_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("print(1)\n", encoding="utf-8")
    present = package_version("debugpy") or ""
    ended = await _start(tmp_path, {"pydevd": present}, target="app.py")
    assert ended["data"]["exit_code"] == 0
    refused = await _start(tmp_path, {"pydevd": "0.0.1"}, target="app.py")
    assert refused["error"]["code"] == "ADAPTER_NOT_FOUND"
    assert f"version {present} is installed, not 0.0.1" in refused["error"]["message"]


async def test_debugpy_in_a_directory_is_used(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("import sys\nprint(sys.argv)\nx = 1\n", encoding="utf-8")
    other = tmp_path / "other"
    other.mkdir()
    (other / "debugpy").symlink_to(Path(debugpy.__file__).parent)
    stop = await _start(tmp_path, {"pydevd": str(other)}, target="app.py", breakpoints=[{"file": "app.py", "line": 3}])
    assert stop["data"]["execution_state"]["status"] == "stopped_at_breakpoint"
    refused = await _start(tmp_path, {"pydevd": str(tmp_path)}, target="app.py")
    assert "there is no debugpy in" in refused["error"]["message"]


async def test_a_program_is_chosen_by_path_and_listed(tmp_path: Path) -> None:
    lldb = PACKAGE.program({})
    async with open_debugger(DebugConfig(root=tmp_path, adapters={"lldb-dap": lldb, "delve": "0.1"})) as toolset:
        listed = (await call_tool(toolset, "adapter", {})).to_json()["data"]["adapters"]
        found = {each["adapter"]: each for each in listed}
        assert found["lldb-dap"]["path"] == lldb
        assert found["delve"]["installed"] is False
        (tmp_path / "app.go").write_text("package main\n\nfunc main() {}\n", encoding="utf-8")
        refused = (await call_tool(toolset, "session_start", {"target": "app.go"})).to_json()
        assert "debug_adapters" in refused["error"]["message"]
        assert "Installed: " in refused["instruction"]


def test_a_version_is_the_suffix_of_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lldb-dap-18", "lldb-dap-20"):
        file = tmp_path / name
        file.write_text("#!/bin/sh\n", encoding="utf-8")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert PACKAGE.program({"lldb-dap": "18"}) == str(tmp_path / "lldb-dap-18")
    assert PACKAGE.program({}) == str(tmp_path / "lldb-dap-20")


async def test_a_version_to_install_is_part_of_the_command_that_the_user_agrees_to(tmp_path: Path) -> None:
    async with open_debugger(DebugConfig(root=tmp_path)) as toolset:
        asked = {"action": "download", "language": "rust", "version": "18"}
        refused = (await call_tool(toolset, "adapter", asked)).to_json()
        assert "lldb-18" in refused["error"]["message"]
        invalid = (await call_tool(toolset, "adapter", {**asked, "version": "18; rm -rf /"})).to_json()
        assert invalid["error"]["code"] == "VALIDATION_INVALID_PARAM"
        fixed = (await call_tool(toolset, "adapter", {**asked, "language": "ruby"})).to_json()
        assert fixed["error"]["code"] == "CAPABILITY_NOT_SUPPORTED"


def test_the_setting_is_checked() -> None:
    assert Settings.model_validate({"debug_adapters": "lldb-dap=18"}).debug_adapters == ("lldb-dap=18",)
    with pytest.raises(ValueError, match="NAME=VERSION"):
        Settings.model_validate({"debug_adapters": "lldb-dap"})
