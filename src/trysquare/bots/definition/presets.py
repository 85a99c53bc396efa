"""Presets of a definition: which actions and gates apply in a run that was started with one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from trysquare.bots.definition.folder import BotFolder, is_name, nearest
from trysquare.bots.workflow.machine import INITIALIZE, Depth, Position, Preset

if TYPE_CHECKING:
    from trysquare.bots.definition.files import PresetEntry
    from trysquare.bots.definition.model import Gate


def load_presets(
    folder: BotFolder,
    path: str,
    entries: Mapping[str, PresetEntry],
    workflow: Collection[str],
    gates: Mapping[Position, Gate],
) -> dict[str, Preset]:
    """The presets of a bot; `workflow` names its workflow actions. Everything wrong in them is reported."""
    order = [each for each in gates if each.action in workflow]
    return {name: _preset(folder, path, name, entry, order, gates) for name, entry in entries.items()}


def _preset(
    folder: BotFolder,
    path: str,
    name: str,
    entry: PresetEntry,
    order: Sequence[Position],
    gates: Mapping[Position, Gate],
) -> Preset:
    if not is_name(name):
        hint = "Use lower-case letters, digits and single underscores: quick."
        folder.report(folder.error(path, f"Invalid preset name `{name}`.", hint=hint, key=name, code="invalid_name"))
    applying = _applying(folder, path, name, entry.actions, order)
    if not any(gates[each].policy != "skip" for each in applying):
        hint = "Name at least one action of the workflow in its `actions`, or remove the preset."
        message = f"The preset `{name}` is empty: no action applies in it."
        folder.report(folder.error(path, message, hint=hint, key=name, code="dead_end"))
    left_out = frozenset(each for each in order if each not in applying and gates[each].policy != "skip")
    kept = _named(folder, path, name, "gates", entry.gates, order)
    gated = (each for each in applying if gates[each].proof or gates[each].requires_clean)
    depth = Depth(name=name, left_out=left_out, waived=frozenset(each for each in gated if each not in kept))
    preset = Preset(depth=depth, description=entry.description, drops_proof=entry.drops_proof)
    _check_proof(folder, path, preset, order, gates)
    return preset


def _applying(
    folder: BotFolder, path: str, preset: str, names: Sequence[str] | None, order: Sequence[Position]
) -> frozenset[Position]:
    named = _named(folder, path, preset, "actions", names, order)
    behaviors = {each.behavior for each in named}
    # The directory is confirmed in every behavior that is worked on.
    return named | {each for each in order if each.action == INITIALIZE and each.behavior in behaviors}


def _named(
    folder: BotFolder, path: str, preset: str, key: str, names: Sequence[str] | None, order: Sequence[Position]
) -> frozenset[Position]:
    """The actions that a list names: by action, behavior or `behavior.action`; all without a list."""
    if names is None:
        return frozenset(order)
    found: set[Position] = set()
    for name in names:
        meant = {each for each in order if name in (each.action, each.behavior, str(each))}
        found |= meant
        if not meant:
            known = sorted({text for each in order for text in (each.action, each.behavior, str(each))})
            message = f"Unknown action or behavior `{name}` in `{key}` of the preset `{preset}`."
            hint = nearest(name, known)
            folder.report(folder.error(path, message, hint=hint, key=name, code="unknown_name"))
    return frozenset(found)


def _check_proof(
    folder: BotFolder, path: str, preset: Preset, order: Sequence[Position], gates: Mapping[Position, Gate]
) -> None:
    taken = preset.depth.left_out | preset.depth.waived
    dropped = next((each for each in order if each in taken and gates[each].proof), None)
    if dropped is not None and not preset.drops_proof:
        name = preset.depth.name
        message = f"The preset `{name}` takes away the gate of `{dropped}`, which demands a human's proof."
        hint = f"Let `{dropped}` and its gate apply, or set `drops_proof`: then whoever starts such a run has to agree."
        folder.report(folder.error(path, message, hint=hint, key=name, code="weak_preset"))
