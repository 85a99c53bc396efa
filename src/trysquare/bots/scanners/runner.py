"""Scans of artifacts with rules, cached, and self-tests of rules."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from trysquare.bots.graph import GraphFile, Node, Pointer, digest_of, nearest_line, problems_of, read_document, walk
from trysquare.bots.scanners.base import (
    CommandScanner,
    Hit,
    Problem,
    Rule,
    Scanner,
    ScannerFailed,
    SchemaScanner,
    Selected,
    Target,
    Violation,
)
from trysquare.bots.scanners.kinds import SECONDS, run_scanner
from trysquare.core.errors import InvalidArguments, NotFound
from trysquare.files.globs import file_matches
from trysquare.files.root import DirectoryRoot, PathNotAllowed

MAX_SCANNED = 1_000_000
"""Larger files are not scanned."""
MAX_FILES = 5_000
MAX_TEXT = 200
GRAPH_RULE = "story_graph"
"""The implicit rule that a story graph is valid."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifacts:
    folder: DirectoryRoot
    graphs: tuple[str, ...] = ()
    files: tuple[str, ...] | None = None
    """Files or globs for file rules; None for every file of the folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanReport:
    violations: tuple[Violation, ...] = ()
    problems: tuple[Problem, ...] = ()
    scanned: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Whether no error was found and every rule could run."""
        return not self.problems and not any(each.severity == "error" for each in self.violations)


@dataclass(kw_only=True, slots=True)
class ScanCache:
    """LRU cache of violations, by the digests of the rule and its inputs."""

    limit: int = 2_000
    _found: OrderedDict[str, tuple[Violation, ...]] = field(default_factory=OrderedDict[str, tuple[Violation, ...]])

    def get(self, key: str) -> tuple[Violation, ...] | None:
        if key in self._found:
            self._found.move_to_end(key)
        return self._found.get(key)

    def put(self, key: str, found: tuple[Violation, ...]) -> None:
        self._found[key] = found
        if len(self._found) > self.limit:
            self._found.popitem(last=False)


def scan(
    rules: Iterable[Rule], artifacts: Artifacts, *, cache: ScanCache | None = None, seconds: float = SECONDS
) -> ScanReport:
    """Run every rule with a scanner over the artifacts."""
    scanned = [rule for rule in rules if rule.scanner is not None]
    cache = ScanCache() if cache is None else cache
    graphs, violations = _read_graphs(artifacts)
    problems: list[Problem] = []
    texts, refused = _read_files(artifacts) if any(_wants_files(rule.scanner) for rule in scanned) else ({}, [])
    for rule in scanned:
        try:
            violations.extend(_scan_rule(rule, graphs, texts, artifacts, cache, seconds))
        except ScannerFailed as error:
            problems.append(Problem(rule=rule.name, file=rule.file, message=f"The rule could not be applied: {error}."))
    return ScanReport(
        violations=tuple(sorted(violations, key=lambda each: (each.severity, each.file, each.line, each.rule))),
        problems=(*problems, *refused),
        scanned=(*(graph.path for graph in graphs), *texts),
    )


def _scan_rule(
    rule: Rule,
    graphs: Sequence[GraphFile],
    texts: dict[str, str],
    artifacts: Artifacts,
    cache: ScanCache,
    seconds: float,
) -> tuple[Violation, ...]:
    scanner = rule.scanner
    assert scanner is not None
    if _wants_files(scanner):
        globs = () if isinstance(scanner, SchemaScanner) else scanner.files
        inputs = {path: text for path, text in texts.items() if matches(path, globs)}
        selected = [Selected(value=text, file=path) for path, text in inputs.items()]
    else:
        inputs = {graph.path: graph.text for graph in graphs}
        selected = [each for graph in graphs for each in _select(scanner.target, graph)]
    key = _key(rule, inputs)
    if (cached := cache.get(key)) is not None:
        return cached
    hits = run_scanner(scanner, selected, artifacts.folder.root, seconds=seconds)
    found = tuple(_violation(rule, selected[hit.index], hit, scanner.message) for hit in hits)
    cache.put(key, found)
    return found


def _violation(rule: Rule, selected: Selected, hit: Hit, message: str) -> Violation:
    return Violation(
        rule=rule.name,
        severity=rule.severity,
        file=selected.file,
        line=selected.line + hit.line - 1,
        message=hit.message or message,
        text=_shortened(hit.text if hit.text is not None else selected.value),
        where=selected.where,
        example=rule.do.examples[0] if rule.do.examples else None,
    )


def _shortened(value: Any) -> str:
    text = value if isinstance(value, str) else str(value.get("name", value) if isinstance(value, dict) else value)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else line[: MAX_TEXT - 1] + "…"


def _select(target: Target, file: GraphFile) -> list[Selected]:
    """Every node of the target's kind, or the values of its field."""
    nodes = [node for node in walk(file.graph) if node.kind == target.kind]
    found = [(node, pointer, value) for node in nodes for pointer, value in _values_of(target, node)]
    return [
        Selected(value=value, file=file.path, line=nearest_line(file, pointer), where=" > ".join(node.address))
        for node, pointer, value in found
    ]


def _values_of(target: Target, node: Node) -> list[tuple[Pointer, Any]]:
    if target.field is None:
        return [(node.pointer, node.value)]
    value: Any = None if node.kind == "step" else node.value.get(target.field)
    pointer = (*node.pointer, target.field)
    if isinstance(value, list):
        return [((*pointer, index), item) for index, item in enumerate(cast("list[Any]", value))]
    return [] if value is None else [(pointer, value)]


def matches(path: str, globs: tuple[str, ...]) -> bool:
    """Whether a path matches one of the globs, or there are none."""
    return not globs or any(file_matches(path, each) for each in globs)


def _key(rule: Rule, inputs: dict[str, str]) -> str:
    text = json.dumps(asdict(rule), sort_keys=True, default=str)
    parts = [text, *(f"{path}\0{digest_of(text)}" for path, text in sorted(inputs.items()))]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _wants_files(scanner: Scanner | None) -> bool:
    return scanner is not None and (scanner.target.kind == "file" or isinstance(scanner, CommandScanner))


def _read_graphs(artifacts: Artifacts) -> tuple[list[GraphFile], list[Violation]]:
    """The valid graphs, and violations of the others."""
    graphs: list[GraphFile] = []
    violations: list[Violation] = []
    for path in dict.fromkeys(artifacts.graphs):
        try:
            file = read_document(artifacts.folder, path)
        except NotFound:
            continue
        except InvalidArguments as error:
            violations.append(_invalid_graph(path, int(error.fields.get("line", 1)), error.message, "/"))
            continue
        problems = problems_of(file.graph)
        for each in problems:
            where = "/" + "/".join(map(str, each.pointer))
            violations.append(_invalid_graph(path, nearest_line(file, each.pointer), each.message, where))
        if not problems:
            graphs.append(file)
    return graphs, violations


def _invalid_graph(path: str, line: int, message: str, where: str) -> Violation:
    return Violation(rule=GRAPH_RULE, severity="error", file=path, line=line, message=message, text=where, where=where)


def _read_files(artifacts: Artifacts) -> tuple[dict[str, str], list[Problem]]:
    texts: dict[str, str] = {}
    refused: list[Problem] = []
    globs = artifacts.files
    for entry in artifacts.folder.walk() if globs != () else ():
        if globs is not None and not matches(entry.path, globs):
            continue
        if len(texts) >= MAX_FILES:
            refused.append(Problem(rule="files", file=entry.path, message=f"Only {MAX_FILES:,} files are scanned."))
            break
        # Images and other binary files are not scanned.
        with contextlib.suppress(PathNotAllowed, NotFound):
            texts[entry.path] = artifacts.folder.read_text(entry.path, limit=MAX_SCANNED)
    return texts, refused


def self_test(rule: Rule) -> list[Problem]:
    """Check a rule against its own examples."""
    if rule.scanner is None:
        return []
    try:
        caught = _caught(rule.scanner, (*rule.dont.examples, *rule.do.examples))
    except ScannerFailed as error:
        return [Problem(rule=rule.name, file=rule.file, message=f"The rule cannot be tested: {error}.")]
    missed = [each for index, each in enumerate(rule.dont.examples) if index not in caught]
    wrong = [each for index, each in enumerate(rule.do.examples, start=len(rule.dont.examples)) if index in caught]
    messages = (
        *(f"The rule does not catch its own don't example: {_shortened(each)}" for each in missed),
        *(f"The rule reports its own do example: {_shortened(each)}" for each in wrong),
    )
    return [Problem(rule=rule.name, file=rule.file, message=message) for message in messages]


def _caught(scanner: Scanner, examples: tuple[Any, ...]) -> set[int]:
    if not isinstance(scanner, CommandScanner):
        selected = [Selected(value=each, file=f"example {index + 1}") for index, each in enumerate(examples)]
        return {hit.index for hit in run_scanner(scanner, selected, None)}
    with tempfile.TemporaryDirectory() as folder:
        selected = [_as_file(Path(folder), scanner.files, index, each) for index, each in enumerate(examples)]
        return {hit.index for hit in run_scanner(scanner, selected, Path(folder))}


def _as_file(folder: Path, globs: tuple[str, ...], index: int, example: Any) -> Selected:
    ending = globs[0].rpartition(".")[2] if globs and "." in globs[0] else "txt"
    name = f"example_{index + 1}.{ending}"
    (folder / name).write_text(str(example), encoding="utf-8")
    return Selected(value=str(example), file=name)
