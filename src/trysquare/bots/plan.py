"""Plan: the order of a bot's behaviors and actions, and what each gate asks for. Pure data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

INITIALIZE = "initialize_project"
"""The action that settles the folder of a run."""

Policy: TypeAlias = Literal["manual", "auto", "skip", "combine_next"]
"""When an action is done: a person says so, it says so itself, it is passed over, or it goes with the next one."""

JumpPolicy: TypeAlias = Literal["allow", "confirm", "deny"]
Jump: TypeAlias = Literal["in_order", "ahead", "reopened"]


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Position:
    """An action of a behavior."""

    behavior: str
    action: str

    def path(self, bot: str) -> str:
        """The position as state files write it: `bot.behavior.action`."""
        return f"{bot}.{self.behavior}.{self.action}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a workflow may do: behaviors and workflow actions in order, and the gates between them."""

    bot: str
    behaviors: tuple[str, ...]
    actions: tuple[str, ...]
    """The workflow actions, in order; every behavior goes through all of them."""
    independent: frozenset[str] = frozenset()
    """Actions outside the order: they never move the pointer and are never completed."""
    policies: Mapping[Position, Policy] = field(default_factory=dict[Position, Policy])
    jumps: Mapping[Jump, JumpPolicy] = field(default_factory=dict[Jump, JumpPolicy])

    @property
    def first(self) -> Position:
        """Where a new run begins."""
        return self.begin(self.behaviors[0])

    def begin(self, behavior: str) -> Position:
        """Where a behavior begins: its first action that is not passed over."""
        wanted = [
            action for action in self.actions if self.policy(Position(behavior=behavior, action=action)) != "skip"
        ]
        return Position(behavior=behavior, action=wanted[0] if wanted else self.actions[0])

    def policy(self, position: Position) -> Policy:
        """The gate of an action."""
        return self.policies.get(position, "manual")

    def jump_policy(self, jump: Jump) -> JumpPolicy:
        """What happens when an action is opened out of order."""
        return "allow" if jump == "in_order" else self.jumps.get(jump, "allow")

    def knows(self, position: Position) -> bool:
        """Whether this is a workflow action of one of the behaviors."""
        return position.behavior in self.behaviors and position.action in self.actions

    def order(self) -> Iterator[Position]:
        """Every workflow action of every behavior, in the order of the work."""
        return (Position(behavior=behavior, action=action) for behavior in self.behaviors for action in self.actions)

    def comes_before(self, first: Position, second: Position) -> bool:
        """Whether one action comes before another in the order of the work."""
        return self._place(first) < self._place(second)

    def _place(self, position: Position) -> tuple[int, int]:
        return self.behaviors.index(position.behavior), self.actions.index(position.action)

    def after(self, position: Position) -> Position | None:
        """The next action of the same behavior that is not passed over, or None at its end."""
        rest = self.actions[self.actions.index(position.action) + 1 :]
        following = (Position(behavior=position.behavior, action=action) for action in rest)
        return next((each for each in following if self.policy(each) != "skip"), None)

    def behaviors_after(self, behavior: str) -> tuple[str, ...]:
        """The behaviors that come after one."""
        return self.behaviors[self.behaviors.index(behavior) + 1 :]
