"""Commands in the sandbox: what they can do, what they cannot, and that nothing of them is left."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.support import size
from tests.workbench.workplace import Workplace, make_repository, need_sandbox, workplace
from trysquare.processes.reaper import processes
from trysquare.workbench import sandbox

SECRET = "hunter2-is-the-password"


@pytest.fixture(params=["bubblewrap", "landlock"])
def way(request: pytest.FixtureRequest) -> str:
    """Both ways to hold a command."""
    need_sandbox(request.param)
    return str(request.param)


@pytest.fixture
async def place(way: str, tmp_path: Path) -> AsyncGenerator[Workplace]:
    make_repository(tmp_path / "work")
    (tmp_path / "work" / "folder").mkdir()
    async with workplace(tmp_path / "work", sandboxes=(way,)) as opened:
        yield opened


async def output_of(place: Workplace, command: str, **more: Any) -> str:
    """What a command wrote, however it ended."""
    return str((await place.send("bash", command=command, **more))["output"])


async def test_a_command_runs_in_the_workspace_and_its_files_are_named(place: Workplace) -> None:
    told = await place.done("bash", command="echo hello; echo trouble >&2; echo new >folder/b.txt; pwd")
    assert told["output"] == f"hello\ntrouble\n{place.root.resolve()}\n"
    assert told["modified_files"] == ["folder/b.txt"]
    assert (place.root / "folder/b.txt").read_text() == "new\n"


async def test_how_a_command_ends_is_reported(place: Workplace) -> None:
    told = await place.send("bash", command="echo half; exit 3")
    assert told["error"]["code"] == "COMMAND_FAILED"
    assert (told["output"], told["data"]["exit_status"]) == ("half\n", 3)


async def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(place: Workplace) -> None:
    mark = f"sleep 98{os.getpid()}"
    told = await place.send("bash", command=f"setsid env -i {mark} & {mark} & echo started; {mark}", timeout=1.5)
    assert told["error"]["code"] == "TOOL_TIMEOUT"
    assert told["output"] == "started\n"
    assert not _running(mark)


async def test_what_a_command_leaves_in_the_background_ends_with_it(place: Workplace) -> None:
    mark = f"sleep 97{os.getpid()}"
    told = await place.done("bash", command=f"setsid env -i {mark} >/dev/null 2>&1 & disown; echo bye")
    assert told["output"] == "bye\n"
    assert not _running(mark)


def _running(mark: str) -> list[int]:
    wanted = mark.replace(" ", "\0").encode()
    found: list[int] = []
    for entry in processes():
        try:
            line = Path(f"/proc/{entry.pid}/cmdline").read_bytes()
        except OSError:
            continue
        if line.rstrip(b"\0") == wanted:
            found.append(entry.pid)
    return found


async def test_a_cancelled_call_leaves_no_process(place: Workplace) -> None:
    mark = f"bash folder/wait.sh 96{os.getpid()}"
    place.write("folder/wait.sh", "echo ready >folder/ready; sleep 1000")
    ready = place.root / "folder" / "ready"
    os.mkfifo(ready)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: place.send("bash", command=f"{mark} & wait"))
        with anyio.fail_after(30):
            # The process under its own name writes the line: a child that has yet to begin its program has another.
            assert await anyio.to_thread.run_sync(ready.read_text) == "ready\n"
        assert _running(mark)
        group.cancel_scope.cancel()
    assert not _running(mark)


async def test_output_without_end_is_bounded(place: Workplace) -> None:
    told = await place.send("bash", command=f"head -c {size(200, 1024)}000000 /dev/zero | tr '\\0' x")
    assert "more than 64 MB" in told["error"]["message"]
    assert len(told["output"]) < 40_000
    assert "bytes left out" in told["output"]


async def test_a_process_that_fills_the_memory_is_refused_more_and_one_that_only_reserves_it_runs(
    place: Workplace,
) -> None:
    filling = f"{sys.executable} -c 'import mmap; mmap.mmap(-1, 9 << 30, mmap.MAP_PRIVATE)'"
    assert "Cannot allocate memory" in await output_of(place, filling)
    reserving = f"{sys.executable} -c 'import mmap; mmap.mmap(-1, 9 << 30, mmap.MAP_PRIVATE, mmap.PROT_READ); print(7)'"
    assert await output_of(place, reserving) == "7\n"


async def test_a_fork_bomb_is_held_and_gone_with_the_call(tmp_path: Path, way: str) -> None:
    mark = f"sleep 95{os.getpid()}"
    bomb = f"bomb() {{ bomb | bomb & }}; bomb; {mark}"
    async with workplace(tmp_path / "work", sandboxes=(way,), processes=60) as held:
        told = await held.send("bash", command=bomb, timeout=3)
    held_by_kernel = "Resource temporarily unavailable" in told["output"]
    assert held_by_kernel or "too many processes" in told["error"]["message"]
    assert not _running(mark)


async def test_too_many_processes_are_ended_where_we_count_them(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "process_group", lambda most: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    many = "for i in $(seq 40); do sleep 30 & done; wait"
    async with workplace(tmp_path / "work", sandboxes=(way,), processes=20) as held:
        told = await held.send("bash", command=many, timeout=20)
    # The kernel's own limit, where it applies, is faster than the count; then the shell exits with 254.
    assert "too many processes" in told["error"]["message"] or told["data"]["exit_status"] == 254


@pytest.mark.parametrize(
    "command",
    [
        "touch /etc/outside",
        "touch {outside}/new",
        "echo x >{outside}/kept.txt",
        "echo x >/proc/self/root{outside}/kept.txt",
        "cd folder && ln -s {outside} out && echo x >out/kept.txt",
        "echo x >>.git/config",
        "mkdir -p .git/hooks; echo x >.git/hooks/pre-commit",
        "mv .git folder/git",
        "rm -rf .git .trysquare",
        "git config core.hooksPath /tmp",
        "git commit --allow-empty --message=x",
        "mkdir folder/m; mount -t tmpfs none folder/m && touch folder/m/x; umount .trysquare && touch .trysquare/x",
        "unshare -Urm true && unshare -Urm mount --bind {outside} folder && touch folder/x",
    ],
)
async def test_nothing_outside_the_workspace_and_nothing_of_git_is_written(
    place: Workplace, tmp_path: Path, command: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")
    before = _state(outside), _state(place.root / ".git")
    await place.send("bash", command=command.format(outside=outside))
    assert (_state(outside), _state(place.root / ".git")) == before
    assert "outside" not in os.listdir("/etc")
    assert (place.root / ".trysquare" / ".gitignore").exists()


def _state(folder: Path) -> dict[str, bytes | None]:
    return {str(file): file.read_bytes() if file.is_file() else None for file in sorted(folder.rglob("*"))}


async def test_secrets_of_the_environment_and_of_the_home_are_not_seen(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text(SECRET)
    (home / ".netrc").write_text(SECRET)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("API_TOKEN", SECRET)
    async with workplace(tmp_path / "work", sandboxes=(way,)) as place:
        seen = await output_of(
            place,
            f"env; cat {home}/.ssh/id_ed25519 {home}/.netrc; cat /proc/{os.getpid()}/environ; "
            "cat /proc/[0-9]*/environ | tr '\\0' '\\n'; cat /proc/self/environ | tr '\\0' '\\n'",
        )
    assert "PATH=" in seen
    assert SECRET not in seen


async def test_there_is_no_network(place: Workplace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        seen = await output_of(place, f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected")
    assert "connected" not in seen


async def test_sockets_of_the_system_are_not_reached(place: Workplace) -> None:
    # Where such sockets lie: /run, and /tmp.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/daemon.sock")
        server.listen()
        connect = f"socket.socket(socket.AF_UNIX).connect('{folder}/daemon.sock'); print('connected')"
        assert "connected" not in await output_of(place, f'python3 -c "import socket; {connect}"')


async def test_our_own_process_is_out_of_reach(place: Workplace) -> None:
    await output_of(place, f"kill -9 {os.getpid()}; kill -9 {os.getppid()}; kill -9 -1")
    assert (await place.send("bash", command="true")) is not None


async def test_a_model_cannot_approve_its_own_calls(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    user_state = tmp_path / "state" / "trysquare" / "state.db"
    user_state.parent.mkdir(parents=True)
    user_state.write_text(SECRET)
    async with workplace(tmp_path / "work", sandboxes=(way,)) as place:
        kept = place.write(".trysquare/state.db", SECRET)
        seen = await output_of(
            place,
            f"cat .trysquare/state.db {user_state}; rm -f .trysquare/state.db; echo forged >.trysquare/state.db; "
            f"unshare -Urm sh -c 'umount .trysquare {user_state.parent}; cat .trysquare/state.db {user_state}'; "
            f"echo forged >{user_state}; mv .trysquare elsewhere; mkdir -p .trysquare; echo x >.trysquare/new",
        )
        assert SECRET not in seen
    assert (kept.read_text(), user_state.read_text()) == (SECRET, SECRET)
    assert sorted(os.listdir(kept.parent)) == [".gitignore", "state.db"]


async def test_the_settings_of_the_server_are_not_changed(place: Workplace) -> None:
    file = place.write("trysquare.toml", "tools = []\n")
    await place.send("bash", command="echo 'tools = [\"evil:tools\"]' >trysquare.toml; rm -f trysquare.toml")
    assert file.read_text() == "tools = []\n"
    assert (await place.refused("file", action="append", path="trysquare.toml", content="x"))[0] == "FILE_NOT_ALLOWED"


async def test_without_a_sandbox_no_command_runs(tmp_path: Path) -> None:
    async with workplace(tmp_path, sandboxes=()) as place:
        code, message = await place.refused("bash", command="touch made")
    assert code == "CAPABILITY_NOT_SUPPORTED"
    assert "(none is allowed)" in message
    assert not (tmp_path / "made").exists()


async def test_a_state_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".trysquare").symlink_to(tmp_path / "elsewhere")
    async with workplace(tmp_path / "work") as place:
        for call in (
            {"tool": "bash", "command": "true"},
            {"tool": "file", "action": "write", "path": "a", "content": ""},
        ):
            assert (await place.refused(call.pop("tool"), **call))[0] == "STATE_UNAVAILABLE"
    assert not list((tmp_path / "elsewhere").iterdir())


@asynccontextmanager
async def _nested(tmp_path: Path, way: str) -> AsyncGenerator[Workplace]:
    project = tmp_path / "work" / "project"
    project.mkdir(parents=True)
    async with workplace(tmp_path / "work", sandboxes=(way,), project=project) as place:
        yield place


async def test_the_state_of_a_project_inside_the_workspace_cannot_be_forged(way: str, tmp_path: Path) -> None:
    async with _nested(tmp_path, way) as place:
        await place.send("bash", command="mkdir -p project/.trysquare; echo forged >project/.trysquare/state.db")
        assert os.listdir(place.root / "project" / ".trysquare") == [".gitignore"]
