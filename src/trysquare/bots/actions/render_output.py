"""render_output: the files that people read, made of the documents."""

from __future__ import annotations

from trysquare.bots.actions.common import FIRST, GIVEN, base_parts, missing_below
from trysquare.bots.actions.work import Outcome, Work
from trysquare.bots.definition import RenderConfig
from trysquare.bots.graph.file import is_other_document
from trysquare.bots.instructions import Part
from trysquare.bots.rendering.files import render_to
from trysquare.core.errors import ToolError
from trysquare.core.types import JsonObject
from trysquare.files.sealed_folder import SealedFolder


def execute(work: Work) -> Outcome:
    """Render every file of the behavior; one that cannot be rendered is named with the reason."""
    content = work.behavior.content
    results = [] if work.only_reads else _all_rendered(work)
    how = Part(name="render_instructions", content=list(content.render_instructions), priority=FIRST)
    told = [{"name": each.name, "output": each.output, "description": each.description} for each in content.renders]
    failed = tuple(str(result["problem"]) for result in results if "problem" in result)
    return Outcome(
        parts=(*base_parts(work), how, Part(name="renders", content=told, priority=GIVEN)),
        data={"files": results},
        warnings=failed,
        missing=missing_below(work, "/render", of="content"),
        message=f"{len(results) - len(failed)} of {len(results)} files were rendered." if results else None,
        failure=_failure(results),
    )


def _failure(results: list[JsonObject]) -> str | None:
    """Why nothing was rendered, where the documents are there and are not story graphs."""
    if not results or not all(result.get("not_a_graph") for result in results):
        return None
    return f"Nothing was rendered: {results[0]['problem']}. Only story graphs can be rendered yet."


def _all_rendered(work: Work) -> list[JsonObject]:
    overwrite = work.parameters.given.get("overwrite") is True
    with SealedFolder(work.project) as folder:
        return [_rendered(folder, each, overwrite=overwrite) for each in work.behavior.content.renders]


def _rendered(folder: SealedFolder, config: RenderConfig, *, overwrite: bool) -> JsonObject:
    try:
        done = render_to(folder, config, overwrite=overwrite)
    except ToolError as error:
        told: JsonObject = {"path": config.output, "problem": f"{config.output}: {error.message}"}
        return {**told, "not_a_graph": True} if is_other_document(folder, config.input) else told
    return {"path": done.path, "changed": done.changed, "digest": done.digest[:12]}
