"""The section `agents`: what a step of the loop costs beside its model and its tools, with few and with many tools.

The model answers at once and the tool does nothing, so that what is left is the loop. The clock runs from the model's
fifth question to its last, so that what is made once a run does not count, for nobody.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from benchmarks.tables import Table, Target
from trysquare.agents import AgentDefinition, run_agent
from trysquare.agents.budget import Budget
from trysquare.agents.capabilities import Bundle
from trysquare.agents.policy import Policy
from trysquare.agents.run import AgentRun
from trysquare.core.tool import Tool, tool
from trysquare.core.toolset import StaticToolset
from trysquare.models import CallRequest, ModelRequest, ModelResponse

SIZES = (10, 75, 1000)
STEPS, FIRST = 45, 5
OURS, PYDANTIC_AI = "Trysquare", "pydantic-ai"


@dataclass(slots=True)
class LoopResults:
    """The best of all rounds: microseconds of CPU a step, by who and for how many tools."""

    steps: dict[tuple[str, int], float] = field(default_factory=dict[tuple[str, int], float])

    def add(self, who: str, tools: int, microseconds: float) -> None:
        """Keep the better of what is known and what was found."""
        self.steps[who, tools] = min(self.steps.get((who, tools), microseconds), microseconds)


def measure_loop(results: LoopResults, *, quick: bool = False) -> None:
    """One round of everything."""
    for tools in (2, 10) if quick else SIZES:
        # So short that a moment in which the machine does something else would show; so it is tried more often.
        results.add(OURS, tools, min(_ours(tools) for _ in range(5)))
        if find_spec("pydantic_ai") is None:
            print("pydantic-ai is left out: it is not installed", file=sys.stderr)
            continue
        results.add(PYDANTIC_AI, tools, _theirs(tools))


class _Clock:
    """CPU time from the fifth of some moments to the last."""

    def __init__(self) -> None:
        self.moments: list[float] = []

    def tick(self) -> None:
        self.moments.append(time.process_time())

    def cost(self) -> float:
        """Microseconds between two moments."""
        if len(self.moments) != STEPS:
            raise RuntimeError(f"the run had {len(self.moments)} steps, not {STEPS}")
        return (self.moments[-1] - self.moments[FIRST]) / (STEPS - FIRST - 1) * 1e6


class _Scripted:
    """A model that calls the first tool again and again, each time with another text, and then gives up."""

    name, context_tokens = "scripted", 1_000_000

    def __init__(self, clock: _Clock) -> None:
        self._left, self._clock = STEPS, clock

    def count(self, text: str) -> int:
        return len(text) // 4

    async def answer(self, request: ModelRequest) -> ModelResponse:
        self._clock.tick()
        self._left -= 1
        name = "tool_0" if self._left else "give_up"
        arguments = {"text": f"text {self._left}"} if self._left else {"reason": "enough"}
        call = CallRequest(id=str(self._left), name=name, arguments=arguments)
        return ModelResponse(text="", calls=(call,), stop="calls", constrained_by="native")


def _tools(count: int) -> list[Tool]:
    async def echo(text: str, times: int = 1) -> str:
        """Say a text again."""
        return text

    return [tool(echo, name=f"tool_{number}", read_only=True) for number in range(count)]


def _ours(count: int) -> float:
    clock = _Clock()
    definition = AgentDefinition(
        name="bench",
        description="Measures.",
        instructions="Go on.",
        # All of them are offered in every request, as the peer does it.
        bundle=Bundle(required=("*",)),
        policy=Policy(default="allow"),
        budget=Budget(steps=STEPS + 1),
    )
    run = AgentRun(definition=definition, task="Go on.", model=_Scripted(clock), toolset=StaticToolset(_tools(count)))
    asyncio.run(run_agent(run))
    return clock.cost()


def _theirs(count: int) -> float:
    from pydantic_ai import Agent, Tool
    from pydantic_ai.messages import ModelResponse as TheirResponse
    from pydantic_ai.messages import TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import UsageLimits

    clock, left = _Clock(), STEPS

    async def answer(messages: Any, info: Any) -> TheirResponse:
        nonlocal left
        clock.tick()
        left -= 1
        if not left:
            return TheirResponse(parts=[TextPart(content="enough")])
        return TheirResponse(parts=[ToolCallPart(tool_name="tool_0", args={"text": f"text {left}"})])

    async def echo(text: str, times: int = 1) -> str:
        """Say a text again."""
        return text

    offered: Any = [Tool(echo, name=f"tool_{number}") for number in range(count)]
    agent = Agent(FunctionModel(answer), tools=offered)
    asyncio.run(agent.run("Go on.", usage_limits=UsageLimits(request_limit=None)))
    return clock.cost()


def loop_tables(results: LoopResults) -> Iterator[Table]:
    """The figures of this section."""
    if not results.steps:
        return
    sizes = sorted({tools for _, tools in results.steps})
    rows = [[who, *_cells(results, who, sizes)] for who in (OURS, PYDANTIC_AI) if (who, sizes[0]) in results.steps]
    yield Table(
        title="Agents: a step of the loop beside its model and its tools, CPU",
        head=["loop", *(f"{tools} tools" for tools in sizes)],
        rows=rows,
    )


def _cells(results: LoopResults, who: str, sizes: Sequence[int]) -> list[str]:
    return [f"{results.steps[who, tools]:.0f} us" for tools in sizes]


def loop_targets(results: LoopResults) -> Iterator[Target]:
    """What is promised of the loop."""
    own, theirs = results.steps.get((OURS, 10)), results.steps.get((PYDANTIC_AI, 10))
    if own is not None and theirs:
        yield Target(promise="a step of the agents' loop, 10 tools, to pydantic-ai's", found=own / theirs, limit=0.1)
    many = results.steps.get((OURS, 1000))
    if own and many is not None:
        yield Target(promise="a step of the agents' loop, 1000 tools to 10", found=many / own, limit=1.1)


def main() -> None:
    """Measure this section alone."""
    results = LoopResults()
    for _ in range(3):
        measure_loop(results)
    for table in loop_tables(results):
        for row in (table.head, *table.rows):
            print("  ".join(cell.ljust(14) for cell in row))
    for target in loop_targets(results):
        print(*target.row(), sep="  ")


if __name__ == "__main__":
    main()
