"""A program for tests that starts children in a supervisor and waits to be killed.

It writes a line of JSON with the numbers of all processes that it has started, directly or not.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from trysquare.processes.supervisor import Command, supervise

# A child with a grandchild in its group, one that left the session, and one that ignores every polite request.
FAMILY = """
import os, signal, subprocess, sys, time
sleep = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]
stubborn = [sys.executable, "-I", "-S", "-c", "import signal, time; signal.signal(15, signal.SIG_IGN);"
            "print(flush=True); time.sleep(600)"]
near = subprocess.Popen(sleep)
far = subprocess.Popen(sleep, start_new_session=True)
deaf = subprocess.Popen(stubborn, stdout=subprocess.PIPE)
deaf.stdout.readline()
print(os.getpid(), near.pid, far.pid, deaf.pid, flush=True)
time.sleep(600)
"""


def family() -> Command:
    """A child with descendants, of whom it prints the numbers."""
    return Command(program=sys.executable, arguments=("-I", "-S", "-c", FAMILY))


async def main(count: int) -> None:
    """Start families, tell of them, and wait."""
    loop = asyncio.get_running_loop()
    async with supervise() as supervisor:
        pids: list[int] = []
        for _ in range(count):
            child = supervisor.start(family())
            told = loop.create_future()
            loop.add_reader(child.stdout, told.set_result, None)
            await told
            loop.remove_reader(child.stdout)
            pids += map(int, os.read(child.stdout, 1000).split())
        sys.stdout.write(json.dumps(pids) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
