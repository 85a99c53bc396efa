"""Certainty: how sure a model was of the tool that it chose, where its backend can tell."""

from __future__ import annotations

from dataclasses import dataclass

from trysquare.agent.own_tools import OWN_NAMES
from trysquare.core.shortening import short
from trysquare.core.types import JsonObject
from trysquare.models.model import ModelAnswer

_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubt:
    """A choice that was hardly one."""

    choices: tuple[tuple[str, float], ...]
    """The likeliest tools, each with its probability."""

    @property
    def key(self) -> str:
        """Names the doubt, so that the person is asked once about the same one."""
        return "-".join(sorted(name for name, _ in self.choices))

    @property
    def told(self) -> str:
        """The choices in a sentence."""
        return ", ".join(f"`{name}` ({share:.0%})" for name, share in self.choices)

    @property
    def schema(self) -> JsonObject:
        """The form of the person's answer."""
        return {
            "type": "object",
            "properties": {"answer": {"type": "string", "title": "What should it do?"}},
            "required": ["answer"],
        }

    def question(self, task: str) -> str:
        """What the person is asked."""
        return f"The agent is not sure how to go on with: {short(task, 200)}\nIt hesitates between {self.told}."

    def is_told_before(self, asked: set[str]) -> bool:
        """Whether the person was asked about the same choice already."""
        return self.key in asked


def doubt_of(answer: ModelAnswer, least: float) -> Doubt | None:
    """The doubt in an answer: no tool had the least probability. None where one had, or where nobody knows."""
    ranked = sorted(answer.choice.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) < 2 or ranked[0][1] >= least or ranked[0][0] in OWN_NAMES:
        return None
    return Doubt(choices=tuple(ranked[:_SHOWN]))
