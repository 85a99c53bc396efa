"""Strength of a definition: what its gates demand, and what a changed definition no longer demands.

A gate is a set of demands. A definition is weaker than another where a demand is missing, where an action that a gate
guarded can be reached without it, or where a jump is easier. What the demands are called makes no difference here, so
that whatever is demanded of a gate in future is compared in the same way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from trysquare.bots.definition import BotDefinition
from trysquare.bots.plan import Jump, JumpPolicy, Position
from trysquare.core.types import JsonObject

PROOF = "a human's proof"
_JUMPS: tuple[Jump, ...] = ("ahead", "reopened")
_RANKS: dict[JumpPolicy, int] = {"allow": 0, "confirm": 1, "deny": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Strength:
    """What a definition demands: the gates with their demands, the order that they guard, and the jumps."""

    digest: str
    order: tuple[str, ...]
    """The actions of the workflow in order, as `behavior.action`, without those that are passed over."""
    gates: Mapping[str, frozenset[str]]
    independent: frozenset[str]
    jumps: Mapping[str, int]

    def to_json(self) -> JsonObject:
        """The strength as a run remembers it."""
        return {
            "digest": self.digest,
            "order": list(self.order),
            "gates": {path: sorted(demands) for path, demands in self.gates.items()},
            "independent": sorted(self.independent),
            "jumps": dict(self.jumps),
        }

    @staticmethod
    def from_json(raw: Any) -> Strength:
        """The strength that a run remembered."""
        stored = cast(Mapping[str, Any], raw)
        return Strength(
            digest=str(stored["digest"]),
            order=tuple(stored["order"]),
            gates={path: frozenset(demands) for path, demands in stored["gates"].items()},
            independent=frozenset(stored["independent"]),
            jumps=dict(stored["jumps"]),
        )


def strength_of(definition: BotDefinition) -> Strength:
    """What a definition demands."""
    plan = definition.plan()
    order = [each for each in plan.order() if plan.policy(each) != "skip"]
    demands = {_path(each): frozenset(_demands(definition, each)) for each in order}
    return Strength(
        digest=definition.digest,
        order=tuple(map(_path, order)),
        gates={path: found for path, found in demands.items() if found},
        independent=plan.independent,
        jumps={jump: _RANKS[plan.jump_policy(jump)] for jump in _JUMPS},
    )


def weakenings(before: Strength, after: Strength, *, strict: bool = False) -> tuple[str, ...]:
    """What a definition no longer demands that another one did, in words; in a strict run every action is a gate."""
    if before.digest == after.digest:
        return ()
    old, new = _gates(before, strict=strict), _gates(after, strict=strict)
    found = [said for path in before.order if path in old for said in _weaker_gate(path, old, new, before, after)]
    found += [f"the jump `{jump}` is easier" for jump, rank in before.jumps.items() if after.jumps.get(jump, 0) < rank]
    return tuple(dict.fromkeys(found))


def _gates(strength: Strength, *, strict: bool) -> Mapping[str, frozenset[str]]:
    if not strict:
        return strength.gates
    return {path: strength.gates.get(path, frozenset()) | {PROOF} for path in strength.order}


def _weaker_gate(
    path: str,
    old: Mapping[str, frozenset[str]],
    new: Mapping[str, frozenset[str]],
    before: Strength,
    after: Strength,
) -> Iterator[str]:
    if path not in after.order:
        yield f"{path} is no longer part of the workflow"
        return
    for demand in sorted(old[path] - new.get(path, frozenset())):
        yield f"{path} no longer needs {demand}"
    place = after.order.index(path)
    for guarded in before.order[before.order.index(path) + 1 :]:
        if guarded in after.order and after.order.index(guarded) < place:
            yield f"{guarded} comes before {path} now"
        elif guarded.partition(".")[2] in after.independent:
            yield f"{guarded} can be called without {path}"


def _demands(definition: BotDefinition, position: Position) -> Iterator[str]:
    gate = definition.gate(position.behavior, position.action)
    if gate.proof:
        yield PROOF
    if not gate.requires_clean:
        return
    yield "clean rules"
    for rule in definition.rules_of(position.behavior):
        if rule.scanner is None or rule.severity != "error":
            continue
        # A changed scanner may find less, and nobody can tell from its text.
        digest = hashlib.sha256(repr(rule.scanner).encode("utf-8", "backslashreplace")).hexdigest()[:12]
        yield f"rule {rule.name} as it was ({digest})"
    for config in definition.behavior(position.behavior).content.knowledge:
        yield f"the document {config.output}"


def _path(position: Position) -> str:
    return f"{position.behavior}.{position.action}"
