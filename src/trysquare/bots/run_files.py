"""Files of a run: every run has documents, answers and rendered files of its own.

The main run has the paths of the bot's definition. Those of another run lie beside them in `runs/<run>/`:
`docs/stories/story-graph.json` of run `b` is `docs/stories/runs/b/story-graph.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from trysquare.bots.actions.built_in import produced_files
from trysquare.bots.artifacts import contents, files_at
from trysquare.bots.definition import BehaviorDefinition, BotDefinition
from trysquare.bots.gates import file_digests
from trysquare.bots.rendering.files import copy_path
from trysquare.bots.state import BotState
from trysquare.bots.state_file import MAIN
from trysquare.bots.workflow import Entry
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.files.sealed_folder import PathRefused, SealedFolder

_LARGEST = 64 * 1024 * 1024


def definition_of_run(definition: BotDefinition, run: str) -> BotDefinition:
    """The definition with the paths of a run in place of those of the main one."""
    if run == MAIN:
        return definition
    behaviors = tuple(_behavior_of_run(each, run) for each in definition.behaviors)
    return replace(definition, behaviors=behaviors, run=run)


def _behavior_of_run(behavior: BehaviorDefinition, run: str) -> BehaviorDefinition:
    content = behavior.content
    return replace(
        behavior,
        content=replace(
            content,
            knowledge=tuple(replace(each, output=run_path(each.output, run)) for each in content.knowledge),
            renders=tuple(
                replace(each, input=run_path(each.input, run), output=run_path(each.output, run))
                for each in content.renders
            ),
            synchronizations=tuple(
                replace(each, input=run_path(each.input, run), output=run_path(each.output, run))
                for each in content.synchronizations
            ),
        ),
    )


def run_path(path: str, run: str) -> str:
    """Where a file of the definition lies in a run."""
    if run == MAIN:
        return path
    place = PurePosixPath(path)
    return str(place.parent / "runs" / run / place.name)


def defined_path(path: str, run: str) -> str:
    """The path in the definition of a file of a run."""
    place = PurePosixPath(path)
    if run == MAIN or place.parent.name != run or place.parent.parent.name != "runs":
        return path
    return str(place.parent.parent.parent / place.name)


def defined_digests(files: Mapping[str, str], run: str) -> dict[str, str]:
    """Digests of a run's files by the paths of the definition."""
    return {defined_path(path, run): digest for path, digest in files.items()}


def proof_holds(project: Path, definition: BotDefinition, run: str, entry: Entry) -> bool:
    """Whether a human agreed to these very files; a proof without a record of them does not hold."""
    position = entry.position
    if entry.files is None or position.behavior not in (each.name for each in definition.behaviors):
        return False
    paths = produced_files(definition, definition.behavior(position.behavior), position.action)
    return defined_digests(file_digests(project, paths), run) == dict(entry.files)


@dataclass(frozen=True, kw_only=True, slots=True)
class Copies:
    """What a new run gets of another one's files."""

    files: Mapping[str, bytes]
    """Contents by the path that they get."""
    lost: tuple[str, ...] = ()
    """Files that were recorded and whose contents are not at hand."""


def plan_copies(
    project: Path, definition: BotDefinition, state: BotState, run: str, to: str, version: int | None
) -> Copies:
    """The files of a run as they are, or as its closes recorded them up to a version."""
    if version is None:
        return Copies(files=_present(project, definition, run, to))
    found: dict[str, bytes] = {}
    lost: list[str] = []
    for path, digest in files_at(state, run, version).items():
        data = contents(project, run_path(path, run), digest)
        if data is None:
            lost.append(path)
        else:
            found[run_path(path, to)] = data
    return Copies(files=found, lost=tuple(lost))


def _present(project: Path, definition: BotDefinition, run: str, to: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with SealedFolder(project) as folder:
        for path in all_files(definition):
            for source, target in (
                (run_path(path, run), run_path(path, to)),
                (copy_path(run_path(path, run)), copy_path(run_path(path, to))),
            ):
                try:
                    found[target] = folder.read_bytes(source, limit=_LARGEST)
                except (NotFound, PathRefused):
                    continue
    return found


def all_files(definition: BotDefinition) -> tuple[str, ...]:
    """Every file that the actions of a bot make, by the paths of the definition."""
    found = (
        path
        for behavior in definition.behaviors
        for action in definition.actions
        for path in produced_files(definition, behavior, action.name)
    )
    return tuple(dict.fromkeys(found))


def write_copies(project: Path, copies: Copies) -> None:
    """Write the files of a new run, and nothing where other files lie in their place."""
    with SealedFolder(project) as folder:
        taken = [path for path, data in copies.files.items() if _differs(folder, path, data)]
        if taken:
            raise ToolError(
                f"`{taken[0]}` exists already and belongs to no run. Nothing was changed.",
                code=ErrorCode.FILE_CONFLICT,
                instruction="Choose another name for the run, or move that file away.",
            )
        for path, data in copies.files.items():
            folder.write_bytes(path, data)


def _differs(folder: SealedFolder, path: str, data: bytes) -> bool:
    try:
        return folder.read_bytes(path, limit=_LARGEST) != data
    except NotFound:
        return False
    except PathRefused:
        return True


def changed_since(project: Path, recorded: Mapping[str, str], run: str) -> tuple[str, ...]:
    """The files of a run that differ from what was recorded of them, by where they lie."""
    paths: Iterable[str] = [run_path(path, run) for path in recorded]
    present = defined_digests(file_digests(project, paths), run)
    return tuple(run_path(path, run) for path, digest in recorded.items() if present.get(path) != digest)
