"""What the audit log says of the presets of runs: who chose them, and who agreed to what they take away."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from trysquare.bots.definition.model import BotDefinition
from trysquare.bots.workflow.machine import RunState
from trysquare.bots.workflow.runs import WorkflowRuns
from trysquare.bots.workflow.transaction import depth_record
from trysquare.core.json import JsonObject, as_object

_CALLS = ("start", "open")
_FROM_FILES = ("imported", "migrated", "external_edit", "branched", "recover")
"""Changes that read a run from a file, which can name a preset that takes away no proof."""
_OTHERS = ("fork", "close", "skip", "reject", "rewind", "loosen", "reset_by_delete")


@dataclass(frozen=True, kw_only=True, slots=True)
class Depths:
    """The changes of all runs as they were audited, in order. A table can be edited; the log is a chain."""

    rows: Mapping[str, list[tuple[str, JsonObject]]]
    """Kind and record of each change, by run."""
    agreed: Collection[tuple[str, str]]
    """Digest of a call, and who agreed to it."""

    @staticmethod
    def of(state: WorkflowRuns, agreed: Collection[tuple[str, str]]) -> Depths:
        found: dict[str, list[tuple[str, JsonObject]]] = {}
        for kind in (*_CALLS, *_FROM_FILES, *_OTHERS):
            for row in state.audited(f"workflow.{kind}"):
                if "version" in row:
                    found.setdefault(str(row.get("run")), []).append((kind, row))
        for rows in found.values():
            rows.sort(key=lambda each: each[1]["version"])
        return Depths(rows=found, agreed=agreed)

    def problems(self, definition: BotDefinition, run: str, state: RunState) -> Iterator[str]:
        """What does not hold of the preset of a run; at most one problem."""
        rows = self.rows.get(run, [])
        mine = None if state.depth is None else _compared(depth_record(state.depth))
        if any(_compared(row.get("depth")) != mine for _, row in rows):
            yield "its preset was changed after it started"
        elif state.depth is None:
            return
        elif not rows or not self._was_chosen(*rows[0], state.depth.name):
            yield f"no call started it with the preset {state.depth.name}"
        elif self._takes_proof(definition, state) and not self._was_agreed(run):
            yield f"nobody agreed to what the preset {state.depth.name} takes away"

    def _was_chosen(self, kind: str, row: JsonObject, name: str) -> bool:
        return kind == "fork" or kind in _FROM_FILES or row.get("preset") == name

    def _takes_proof(self, definition: BotDefinition, state: RunState) -> bool:
        if state.depth is None:
            return False
        taken = state.depth.left_out | state.depth.waived
        return any(each in taken and gate.proof for each, gate in definition.gates.items())

    def _was_agreed(self, run: str) -> bool:
        kind, row = self.rows.get(run, [("", {})])[0]
        if kind == "fork":
            return self._was_agreed(str(row.get("from")).rpartition("@")[0])
        found = as_object(row.get("preset_agreement"))
        return (str(found.get("digest")), str(found.get("by"))) in self.agreed


def _compared(depth: object) -> JsonObject | None:
    """A depth without its agreement, which a receipt that is missing takes away."""
    found = as_object(depth)
    return {name: value for name, value in found.items() if name != "confirmed"} if found else None
