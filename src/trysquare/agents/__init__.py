"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.agents.definition import AgentDefinition
    from trysquare.agents.loop import run_agent
    from trysquare.agents.provider import open_agents
    from trysquare.agents.run import AgentRequest

__all__ = ["AgentDefinition", "AgentRequest", "open_agents", "run_agent"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "definition": "AgentDefinition",
        "loop": "run_agent",
        "provider": "open_agents",
        "run": "AgentRequest",
    },
)
