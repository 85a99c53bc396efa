"""Work: what an action is given, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from trysquare.bots.definition import ActionDefinition, BehaviorDefinition, BotDefinition
from trysquare.bots.instructions import Part
from trysquare.bots.parameters import Parameters
from trysquare.bots.saved import Saved
from trysquare.bots.scope import Scope
from trysquare.core.types import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """One call of an action: where, with what, and what is known already."""

    definition: BotDefinition
    behavior: BehaviorDefinition
    action: ActionDefinition
    project: Path
    parameters: Parameters = field(default_factory=Parameters)
    scope: Scope = field(default_factory=Scope)
    saved: Saved = field(default_factory=Saved)
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What is remembered of the run."""
    only_reads: bool = False
    """Whether only the instructions are wanted, so that nothing may be written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What an action has to say: the parts of its instructions in reading order, and data beside them."""

    parts: tuple[Part, ...] = ()
    data: JsonObject = field(default_factory=dict[str, Any])
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """Optional parts of the bot that would belong here and are not there."""
    message: str | None = None
    failure: str | None = None
    """Why nothing came of the action, although its instructions are handed out."""


Execute: TypeAlias = Callable[[Work], Outcome]
"""What an action does when it is called. It may read and write in the project; it moves nothing."""
