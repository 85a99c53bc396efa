"""Landlock: a program that runs a command which may read and write only what it is told, and leaves nothing behind.

Run as `python -I -S landlock_program.py SPECIFICATION`, with JSON that names what may be read and written, it starts
the command in a Landlock domain with a filter of system calls, waits for it and ends all that it has started. It is
for systems where bubblewrap cannot make namespaces. It imports the standard library only.
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
"""From here on a domain keeps its signals and abstract sockets to itself."""
_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_LIST = 8
_READ = 1 | 4 | _LIST
_ALL = 0xFFFF
_OF_FILES = 1 | 2 | 4 | 1 << 14 | 1 << 15
_NETWORK = 3
_SCOPES = 3
_PR_CAPBSET_DROP = 24
_FIRST_BEYOND_FILES = 5
"""The capabilities below it are about owners and modes of files; Landlock holds those to the workspace."""
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 38, 22, 1, 36
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 1
_X32 = 0x40000000

# Sockets, rings that can make sockets, and changes of permissions, owners and attributes, which Landlock lets pass.
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
    """Why this system cannot run commands this way; None where it can."""
    if platform.machine() not in _CALLS or not sys.platform.startswith("linux"):
        return f"the system calls of {platform.machine()} are not known"
    abi = int(_libc().syscall(_CREATE, None, 0, 1))
    if abi < LEAST_ABI:
        return f"the kernel's Landlock is too old ({max(abi, 0)} of {LEAST_ABI})"
    return None


def restrict(specification: dict[str, Any]) -> None:
    """Give up everything that the specification does not name. There is no way back."""
    libc = _libc()
    network = 0 if specification["network"] else _NETWORK
    ruleset = _checked(libc.syscall(_CREATE, struct.pack("QQQ", _ALL, network, _SCOPES), 24, 0), "Landlock")
    for path in specification["list"]:
        _allow(libc, ruleset, path, _LIST)
    for path in specification["read"]:
        _allow(libc, ruleset, path, _READ)
    for path in specification["write"]:
        _allow(libc, ruleset, path, _ALL)
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
        kept = rights if os.path.isdir(f"/proc/self/fd/{opened}") else rights & _OF_FILES
        _checked(libc.syscall(_ADD_RULE, ruleset, 1, struct.pack("=Qi", kept, opened), 0), path)
    finally:
        os.close(opened)


def _filter_calls(libc: Any, *, sockets: bool) -> None:
    architecture, socket, refused = _CALLS[platform.machine()]
    numbers = refused if sockets else (socket, *refused)
    steps = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _REFUSE), (_LOAD, 0, 0, 0)]
    # The second numbering of the same calls would walk past the list.
    steps += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _REFUSE)]
    for number in numbers:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    _checked(libc.prctl(_PR_SET_SECCOMP, 2, program, 0, 0), "seccomp")


def drop_capabilities() -> None:
    """Leave root no more than what concerns files, from the next program on: some powers see into other processes."""
    libc = _libc()
    number = _FIRST_BEYOND_FILES
    while libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1


def become_command(specification: dict[str, Any]) -> NoReturn:
    """In the child: set the limits, give up the rights and become the command."""
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
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if specification["merged"]:
            os.dup2(1, 2)
        restrict(specification)
        os.execvp(specification["command"][0], specification["command"])
    except OSError as error:
        os.write(2, f"{error}\n".encode())
    os._exit(126)


def _be_first_to_go() -> None:
    """Have the kernel end the command before others where memory runs out; where it cannot be told, it runs as well."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
            score.write("1000")
    except OSError:
        return


def _limit(kind: int, most: int) -> None:
    """Set a limit, or keep the one that we were given ourselves where that is lower."""
    own = resource.getrlimit(kind)[1]
    least = most if own == resource.RLIM_INFINITY else min(most, own)
    resource.setrlimit(kind, (least, least))


def _own_processes() -> int:
    """Threads of this user: the kernel counts all of them, not only those of the command."""
    count, own = 0, os.geteuid()
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == own:
                count += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return count


def descendants() -> list[int]:
    """All that was started from here and lives: what lost its parent became our child."""
    parents: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                stat = file.read()
        except OSError:
            continue
        fields = stat[stat.rfind(b")") + 2 :].split()
        if fields[0] != b"Z":
            parents.setdefault(int(fields[1]), []).append(int(name))
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return found


def end_all() -> None:
    """End every descendant. They are stopped first, so that none starts another meanwhile."""
    until = time.monotonic() + 10
    while (found := descendants()) and time.monotonic() < until:
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
    """Run the command, wait for it, and end what it left."""
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
