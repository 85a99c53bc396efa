"""Program that runs a command in a Landlock domain, where bubblewrap cannot create namespaces.

Run as `python -I -S landlock_exec.py SPECIFICATION`, with JSON that names the readable and writable paths, it starts
the command with a filter of system calls, waits for it and kills all that it has started. Standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
import time
from typing import Any, NoReturn

LEAST_ABI = 6
"""From this version on, a domain confines signals and abstract sockets."""
_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_LIST = 8
_READ = 1 | 4 | _LIST
_ALL = 0xFFFF
_OF_FILES = 1 | 2 | 4 | 1 << 14 | 1 << 15
_NETWORK = 3
_SCOPES = 3
_PR_CAPBSET_DROP = 24
_FIRST_BEYOND_FILES = 5
"""Capabilities below it concern owners and modes of files, which Landlock confines to the workspace."""
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 38, 22, 1, 36
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1
_X32 = 0x40000000

# Sockets, io_uring (which can open sockets), and changes of modes, owners and attributes, which Landlock permits.
_CALLS: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "x86_64": (0xC000003E, 41, (425, 90, 91, 92, 93, 94, 188, 189, 190, 197, 198, 199, 260, 268, 452, 463, 466)),
    "aarch64": (0xC00000B7, 198, (425, 5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 452, 463, 466)),
}


def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def missing() -> str | None:
    """Why Landlock is unavailable; None if it is available."""
    if platform.machine() not in _CALLS or not sys.platform.startswith("linux"):
        return f"unknown system calls of {platform.machine()}"
    abi = int(_libc().syscall(_CREATE, None, 0, 1))
    if abi < LEAST_ABI:
        return f"the kernel's Landlock is too old ({max(abi, 0)} of {LEAST_ABI})"
    return None


def restrict(specification: dict[str, Any]) -> None:
    """Give up every right that the specification does not grant, irrevocably."""
    libc = _libc()
    network = 0 if specification["network"] else _NETWORK
    ruleset = _checked(libc.syscall(_CREATE, struct.pack("QQQ", _ALL, network, _SCOPES), 24, 0), "Landlock")
    for kind, rights in (("list", _LIST), ("read", _READ), ("write", _ALL)):
        for path in specification[kind]:
            _allow(libc, ruleset, path, rights)
    _checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    _checked(libc.syscall(_RESTRICT, ruleset, 0), "Landlock")
    os.close(ruleset)
    _filter_calls(libc, sockets=specification["network"])


def _allow(libc: Any, ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # not there, so there is nothing to allow
    try:
        granted = rights if os.path.isdir(f"/proc/self/fd/{opened}") else rights & _OF_FILES
        _checked(libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", granted, opened), 0), path)
    finally:
        os.close(opened)


def _filter_calls(libc: Any, *, sockets: bool) -> None:
    architecture, socket, refused = _CALLS[platform.machine()]
    numbers = refused if sockets else (socket, *refused)
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _REFUSE), (_LOAD, 0, 0, 0)]
    # The x32 numbers of the same calls would bypass the list.
    steps += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _REFUSE)]
    for number in numbers:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    _checked(libc.prctl(_PR_SET_SECCOMP, 2, program, 0, 0), "seccomp")


def drop_capabilities() -> None:
    """Drop root's capabilities beyond files, from the next exec on: some can inspect other processes."""
    libc = _libc()
    number = _FIRST_BEYOND_FILES
    while libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1


def become_command(specification: dict[str, Any]) -> NoReturn:
    """In the child: set limits, drop rights and exec the command."""
    try:
        _be_first_to_go()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _limit(resource.RLIMIT_FSIZE, specification["file_bytes"])
        _limit(resource.RLIMIT_DATA, specification["memory_bytes"])
        if os.geteuid() != 0:
            most = specification["processes"] + _own_processes()
            resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
        else:
            drop_capabilities()
        if not specification["reads_input"]:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if specification["merged"]:
            os.dup2(1, 2)
        restrict(specification)
        os.execvp(specification["command"][0], specification["command"])
    except OSError as error:
        os.write(2, f"{error}\n".encode())
    os._exit(126)


def _be_first_to_go() -> None:
    """Let the OOM killer choose the command first; a system that refuses this is no reason to fail."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("1000")
    except OSError:
        return


def _limit(kind: int, most: int) -> None:
    """Set a limit, or keep our own if it is lower."""
    own = resource.getrlimit(kind)[1]
    least = most if own == resource.RLIM_INFINITY else min(most, own)
    resource.setrlimit(kind, (least, least))


def _own_processes() -> int:
    """Threads of this user: RLIMIT_NPROC counts all of them, not only those of the command."""
    count, own = 0, os.geteuid()
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == own:
                count += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return count


def descendants(root: int, *, zombies: bool = False) -> list[int]:
    """Processes started below `root`; with a subreaper as root, also those that lost their parent."""
    parents: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                stat = file.read()
        except OSError:
            continue
        fields = stat[stat.rfind(b")") + 2 :].split()
        if zombies or fields[0] != b"Z":
            parents.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def end_all() -> None:
    """Kill every descendant, stopping them first so that none can fork meanwhile."""
    until = time.monotonic() + 10
    while (found := descendants(os.getpid())) and time.monotonic() < until:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
        _collect()


def _collect() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return


def main(specification: dict[str, Any]) -> int:
    """Run the command, wait for it, and kill what it left running."""
    libc = _libc()
    _checked(libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "subreaper")
    _checked(libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0), "end with the parent")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        become_command(specification)
    try:
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_all()


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
