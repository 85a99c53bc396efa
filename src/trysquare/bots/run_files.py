"""Files of a run: every run has documents, answers and rendered files of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TypeVar

from trysquare.bots.actions import produced_files
from trysquare.bots.artifacts import contents, files_at
from trysquare.bots.checkout_runs import is_of_checkout
from trysquare.bots.definition.model import BehaviorDefinition, BotDefinition, RenderConfig, SynchronizeConfig
from trysquare.bots.documents.store import expand
from trysquare.bots.gates import MAX_FILE, file_digests
from trysquare.bots.rendered import copy_path
from trysquare.bots.workflow.machine import Entry
from trysquare.bots.workflow.runs import WorkflowRuns
from trysquare.bots.workflow.state_file import MAIN
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.files.root import DirectoryRoot, PathNotAllowed

Config = TypeVar("Config", RenderConfig, SynchronizeConfig)


def definition_of_run(definition: BotDefinition, run: str) -> BotDefinition:
    """The definition with the paths of a run instead of those of the main run."""
    if _is_plain(run):
        return definition
    behaviors = tuple(_behavior_of_run(each, run) for each in definition.behaviors)
    return replace(definition, behaviors=behaviors, run=run)


def _behavior_of_run(behavior: BehaviorDefinition, run: str) -> BehaviorDefinition:
    def moved(configs: tuple[Config, ...]) -> tuple[Config, ...]:
        return tuple(
            replace(each, input=run_path(each.input, run), output=run_path(each.output, run)) for each in configs
        )

    content = behavior.content
    knowledge = tuple(replace(each, output=run_path(each.output, run)) for each in content.knowledge)
    renders, synchronizations = moved(content.renders), moved(content.synchronizations)
    content = replace(content, knowledge=knowledge, renders=renders, synchronizations=synchronizations)
    return replace(behavior, content=content)


def _is_plain(run: str) -> bool:
    """Whether the files of a run are at the paths of the definition."""
    return run == MAIN or is_of_checkout(run)


def run_path(path: str, run: str) -> str:
    """The path of a file in a run: `docs/graph.json` of run `b` is `docs/runs/b/graph.json`."""
    file = PurePosixPath(path)
    return path if _is_plain(run) else str(file.parent / "runs" / run / file.name)


def defined_path(path: str, run: str) -> str:
    """The path in the definition of a file of a run."""
    file = PurePosixPath(path)
    if _is_plain(run) or file.parent.name != run or file.parent.parent.name != "runs":
        return path
    return str(file.parent.parent.parent / file.name)


def defined_digests(files: Mapping[str, str], run: str) -> dict[str, str]:
    """Digests of a run's files by the paths of the definition."""
    return {defined_path(path, run): digest for path, digest in files.items()}


def proof_holds(project: Path, definition: BotDefinition, run: str, entry: Entry) -> bool:
    """Whether a human approved the present files; a proof without a record of files is invalid."""
    position = entry.position
    if entry.files is None or position.behavior not in (each.name for each in definition.behaviors):
        return False
    paths = produced_files(definition, definition.behavior(position.behavior), position.action)
    return defined_digests(file_digests(project, paths), run) == dict(entry.files)


@dataclass(frozen=True, kw_only=True, slots=True)
class Copies:
    files: Mapping[str, bytes]
    """Contents by their new path."""
    lost: tuple[str, ...] = ()
    """Recorded files whose contents are not available."""


def plan_copies(
    project: Path, definition: BotDefinition, state: WorkflowRuns, run: str, to: str, version: int | None
) -> Copies:
    """The present files of a run, or those recorded by its closes up to a version."""
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
    with DirectoryRoot(project) as folder:
        made = (found for path in all_files(definition) for found in expand(folder, run_path(path, run)))
        for path in (defined_path(each, run) for each in made):
            for source, target in (
                (run_path(path, run), run_path(path, to)),
                (copy_path(run_path(path, run)), copy_path(run_path(path, to))),
            ):
                try:
                    found[target] = folder.read_bytes(source, limit=MAX_FILE)
                except (NotFound, PathNotAllowed):
                    continue
    return found


def all_files(definition: BotDefinition) -> tuple[str, ...]:
    """Every file that the actions of a bot produce, by the paths of the definition."""
    found = (
        path
        for behavior in definition.behaviors
        for action in definition.actions_of(behavior.name)
        for path in produced_files(definition, behavior, action.name)
    )
    return tuple(dict.fromkeys(found))


def write_copies(project: Path, copies: Copies) -> None:
    """Write the files of a new run, or none where another file has one of the paths."""
    with DirectoryRoot(project) as folder:
        taken = [path for path, data in copies.files.items() if _differs(folder, path, data)]
        if taken:
            raise ToolError(
                f"`{taken[0]}` already exists and belongs to no run. Nothing was changed.",
                code=ErrorCode.FILE_CONFLICT,
                instruction="Choose another name for the run, or move that file.",
            )
        for path, data in copies.files.items():
            folder.write_bytes(path, data)


def _differs(folder: DirectoryRoot, path: str, data: bytes) -> bool:
    try:
        return folder.read_bytes(path, limit=MAX_FILE) != data
    except NotFound:
        return False
    except PathNotAllowed:
        return True


def changed_since(project: Path, recorded: Mapping[str, str], run: str) -> tuple[str, ...]:
    """The files of a run that differ from their recorded digests."""
    present = file_digests(project, [run_path(path, run) for path in recorded])
    return tuple(path for each, digest in recorded.items() if present.get(path := run_path(each, run)) != digest)
