"""Strength of a definition: what its gates demand, and what a changed definition no longer demands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.json import JsonObject

PROOF = "a human's proof"


@dataclass(frozen=True, kw_only=True, slots=True)
class Strength:
    """What a definition demands: the gates with their demands, the order that they guard, and the jumps.

    The names of the demands make no difference, so that future demands are compared in the same way.
    """

    digest: str
    order: tuple[str, ...]
    """The workflow actions in order, as `behavior.action`, without skipped ones."""
    gates: Mapping[str, frozenset[str]]
    independent: frozenset[str]
    jumps: Mapping[str, int]

    def to_json(self) -> JsonObject:
        return {
            "digest": self.digest,
            "order": list(self.order),
            "gates": {path: sorted(demands) for path, demands in self.gates.items()},
            "independent": sorted(self.independent),
            "jumps": dict(self.jumps),
        }

    @staticmethod
    def from_json(raw: Any) -> Strength:
        stored = cast(Mapping[str, Any], raw)
        return Strength(
            digest=str(stored["digest"]),
            order=tuple(stored["order"]),
            gates={path: frozenset(demands) for path, demands in stored["gates"].items()},
            independent=frozenset(stored["independent"]),
            jumps=dict(stored["jumps"]),
        )


def weakenings(before: Strength, after: Strength, *, strict: bool = False) -> tuple[str, ...]:
    """Describe what a definition no longer demands; in a strict run every action is a gate.

    A definition is weaker where a demand is missing, where an action is reachable without the gate that guarded it, or
    where a jump is easier.
    """
    if before.digest == after.digest:
        return ()
    old, new = _gates(before, strict=strict), _gates(after, strict=strict)
    found = [text for path in before.order if path in old for text in _weaker_gate(path, old, new, before, after)]
    found += [f"the jump `{jump}` is easier" for jump, rank in before.jumps.items() if after.jumps.get(jump, 0) < rank]
    return tuple(dict.fromkeys(found))


def _gates(strength: Strength, *, strict: bool) -> Mapping[str, frozenset[str]]:
    if not strict:
        return strength.gates
    return {path: strength.gates.get(path, frozenset()) | {PROOF} for path in strength.order}


def _weaker_gate(
    path: str, old: Mapping[str, frozenset[str]], new: Mapping[str, frozenset[str]], before: Strength, after: Strength
) -> Iterator[str]:
    if path not in after.order:
        yield f"{path} is no longer part of the workflow"
        return
    for demand in sorted(old[path] - new.get(path, frozenset())):
        yield f"{path} no longer needs {demand}"
    index = after.order.index(path)
    for guarded in before.order[before.order.index(path) + 1 :]:
        if guarded in after.order and after.order.index(guarded) < index:
            yield f"{guarded} comes before {path} now"
        elif guarded.partition(".")[2] in after.independent:
            yield f"{guarded} can be called without {path}"
