"""A process that closes actions until the workflow is finished or it is killed. It prints a line after each close.

Every close has a key of its own. A process that is started again begins with its first key, so that closes which were
made but never acknowledged get their answer now.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from trysquare import ErrorCode, ToolError
from trysquare.bots.workflow.machine import Plan, RunState, close
from trysquare.bots.workflow.runs import Change, Request, Transition, WorkflowRuns, open_workflows
from trysquare.bots.workflow.sync import StateFileSync

BOT = "long_bot"


def long_plan(closes: int) -> Plan:
    """A plan that takes so many closes, in steps of ten."""
    behaviors = tuple(f"b{number}" for number in range(closes // 10))
    return Plan(bot=BOT, behaviors=behaviors, actions=tuple(f"a{number}" for number in range(10)))


def long_state(project: Path, url: str | None, closes: int) -> WorkflowRuns:
    """The state of a long workflow."""
    return WorkflowRuns(plan=long_plan(closes), store=open_workflows(url, project), sync=StateFileSync(project, BOT))


def close_once(state: WorkflowRuns, key: str) -> str | None:
    """Close whatever action is current, exactly once; None at the end of the workflow."""
    request = Request(key=key, tool="close")

    def change(before: RunState) -> Change:
        if before.finished:
            return Change(state=before)
        closed = close(state.plan, before, at="now")
        path = f"{closed.completed.behavior}.{closed.completed.action}"
        answer = {"line": f"{key} {closed.state.version} {path}"}
        return Change(state=closed.state, added=closed.added, answer=answer)

    def move(version: int | None) -> Transition:
        return state.move(change, kind="close", principal="agent", expected_version=version, request=request)

    try:
        moved = move(state.load().state.version)
    except ToolError as error:
        if error.code != ErrorCode.STATE_CONFLICT:
            raise
        # Another agent was faster. The key was not used up by that, and what is current now is closed with it.
        moved = move(None)
    return moved.answer.get("line")


def work(state: WorkflowRuns, name: str, lock: threading.Lock) -> None:
    """One agent: it closes and acknowledges."""
    number = 0
    while (line := close_once(state, f"{name}-{number}")) is not None:
        with lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
        number += 1


def main(project: str, url: str, closes: str, name: str, agents: str) -> None:
    """Let some agents work in this process."""
    state = long_state(Path(project), url if url != "-" else None, int(closes))
    lock = threading.Lock()
    threads = [threading.Thread(target=work, args=(state, f"{name}.{each}", lock)) for each in range(int(agents))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
