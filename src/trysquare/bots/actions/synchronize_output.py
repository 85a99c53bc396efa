"""synchronize_output: edits of the rendered files go back into the documents."""

from __future__ import annotations

from trysquare.bots.actions.common import FIRST, GIVEN, base_parts, missing_below
from trysquare.bots.actions.work import Outcome, Work
from trysquare.bots.definition import RenderConfig
from trysquare.bots.instructions import Part
from trysquare.bots.rendering.files import synchronize_from
from trysquare.core.errors import ToolError
from trysquare.core.types import JsonObject
from trysquare.files.sealed_folder import SealedFolder


def execute(work: Work) -> Outcome:
    """Carry the edits of every synchronized file back; what cannot be carried is named with the reason."""
    content = work.behavior.content
    results = [] if work.only_reads else _all_carried(work)
    how = Part(name="synchronize_instructions", content=list(content.synchronize_instructions), priority=FIRST)
    configs = [
        {"name": each.name, "input": each.input, "output": each.output, "carries": list(each.carries)}
        for each in content.synchronizations
    ]
    return Outcome(
        parts=(*base_parts(work), how, Part(name="synchronizations", content=configs, priority=GIVEN)),
        data={"files": results},
        warnings=tuple(str(result["problem"]) for result in results if "problem" in result),
        missing=missing_below(work, "synchronize", of="content"),
    )


def _all_carried(work: Work) -> list[JsonObject]:
    content = work.behavior.content
    renders = {each.name: each for each in content.renders}
    confirmed = work.parameters.given.get("confirm_deletion") is True
    with SealedFolder(work.project) as folder:
        return [_carried(folder, renders[each.render], confirmed=confirmed) for each in content.synchronizations]


def _carried(folder: SealedFolder, config: RenderConfig, *, confirmed: bool) -> JsonObject:
    try:
        done = synchronize_from(folder, config, confirm_deletion=confirmed)
    except ToolError as error:
        return {"path": config.output, "problem": f"{config.output}: {error.message}"}
    return {"path": config.output, "changes": list(done.changes), "conflicts": list(done.conflicts)}
