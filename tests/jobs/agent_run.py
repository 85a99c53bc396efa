"""A recorded run of the real loop: a model that says its lines by heart, and tools that write down what they did."""

from __future__ import annotations

from tests.agents.scripted import FINISH, ScriptedModel, call, definition
from tests.jobs.dying import Dying
from trysquare import StaticToolset, Tool, tool
from trysquare.agents import run_agent
from trysquare.agents.journal import Journal
from trysquare.agents.run import AgentRun
from trysquare.core.json import JsonObject
from trysquare.models import ModelRequest, ModelResponse

LINES = (
    [call("look", what="a"), call("look", what="b")],
    call("pay", amount=1),
    call("mail", to="Ada"),
    call("pay", amount=2),
    call("look", what="c"),
    call("mail", to="Bob"),
    FINISH,
)
DOINGS = (
    "answer 1", "look a", "look b", "answer 2", "pay 1", "answer 3", "mail Ada", "answer 4", "pay 2", "answer 5",
    "look c", "answer 6", "mail Bob", "answer 7",
)  # fmt: skip
"""What the run does where a kill can strike."""
ASKS = {"mail Ada": "call 3.1 mail", "mail Bob": "call 6.1 mail"}
"""The steps that nobody may repeat."""


class ByHeart(ScriptedModel):
    """Says the line that belongs to the dialogue so far, in whichever life of the job it is asked."""

    def __init__(self, dying: Dying) -> None:
        super().__init__(())
        self._dying = dying

    async def answer(self, request: ModelRequest) -> ModelResponse:
        number = sum(message.role == "assistant" for message in request.messages)
        self._said = [LINES[number]]
        self._dying.do(f"answer {number + 1}")
        return await super().answer(request)


def tools(dying: Dying) -> list[Tool]:
    """One tool that only reads, one that takes keys, and one that does neither."""

    def look(what: str) -> str:
        """Look at something."""
        dying.do(f"look {what}")
        return "There it is."

    def pay(amount: int, request_key: str = "") -> str:
        """Pay an amount, once for each key."""
        dying.do(f"pay {amount}", request_key)
        return "Paid."

    def mail(to: str) -> str:
        """Send a mail."""
        dying.do(f"mail {to}")
        return "Sent."

    return [tool(look, read_only=True), tool(pay), tool(mail)]


async def run_recorded(journal: Journal, dying: Dying) -> JsonObject:
    """The run, as a job's body has it."""
    agent = definition(parallel=True)
    run = AgentRun(definition=agent, task="Pay and write.", model=ByHeart(dying), toolset=StaticToolset(tools(dying)))
    return (await run_agent(run, journal)).to_json()
