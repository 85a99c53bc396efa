"""Scan: every rule over every artifact, with results kept by what they were made from."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field

from trysquare.bots.graph.file import GraphFile, digest_of, nearest_line, read_document
from trysquare.bots.graph.schema import problems_of
from trysquare.bots.rules import CommandScanner, PythonScanner, RegexScanner, Rule, Scanner
from trysquare.bots.scanning.findings import Problem, ScannerFailed, Selected, Violation, violation
from trysquare.bots.scanning.running import SECONDS, run_scanner
from trysquare.bots.scanning.selecting import matches, select
from trysquare.core.errors import InvalidArguments, NotFound
from trysquare.files.sealed_folder import PathRefused, SealedFolder

MAX_SCANNED = 1_000_000
"""Larger files are named as not scanned."""
MAX_FILES = 5_000
GRAPH_RULE = "story_graph"
"""The rule that a story graph has the shape of one; every bot has it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifacts:
    """What a scan looks at."""

    folder: SealedFolder
    graphs: tuple[str, ...] = ()
    """Story graphs by their paths; one that does not exist yet is left out."""
    files: tuple[str, ...] | None = None
    """Files or globs to hold the rules for files against; None means every file of the folder, and none means none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanReport:
    """What a scan found."""

    violations: tuple[Violation, ...] = ()
    problems: tuple[Problem, ...] = ()
    scanned: tuple[str, ...] = ()
    """The artifacts that were looked at."""

    @property
    def clean(self) -> bool:
        """Whether nothing stands against going on: no error, and no rule that could not be applied."""
        return not self.problems and not any(each.severity == "error" for each in self.violations)


@dataclass(kw_only=True, slots=True)
class ScanCache:
    """Results by the digests of the rule and of everything that it looked at."""

    limit: int = 2_000
    _kept: OrderedDict[str, tuple[Violation, ...]] = field(default_factory=OrderedDict[str, tuple[Violation, ...]])

    def get(self, key: str) -> tuple[Violation, ...] | None:
        """What was found for the same inputs before."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def put(self, key: str, found: tuple[Violation, ...]) -> None:
        """Keep a result; the one that was not asked for the longest goes."""
        self._kept[key] = found
        if len(self._kept) > self.limit:
            self._kept.popitem(last=False)


def scan(
    rules: Iterable[Rule], artifacts: Artifacts, *, cache: ScanCache | None = None, seconds: float = SECONDS
) -> ScanReport:
    """Hold every rule that has a scanner against the artifacts."""
    ruled = [rule for rule in rules if rule.scanner is not None]
    kept = cache if cache is not None else ScanCache()
    graphs, violations = _read_graphs(artifacts)
    problems: list[Problem] = []
    texts, refused = _read_files(artifacts) if any(_wants_files(rule.scanner) for rule in ruled) else ({}, [])
    for rule in ruled:
        try:
            violations.extend(_scan_rule(rule, graphs, texts, artifacts, kept, seconds))
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
    wanted = {path: text for path, text in texts.items() if matches(path, _globs(scanner))}
    inputs = wanted if _wants_files(scanner) else {graph.path: graph.text for graph in graphs}
    key = _key(rule, inputs)
    known = cache.get(key)
    if known is not None:
        return known
    selected = (
        [Selected(value=text, file=path) for path, text in wanted.items()]
        if _wants_files(scanner)
        else [each for graph in graphs for each in select(scanner.target, graph)]
    )
    hits = run_scanner(scanner, selected, artifacts.folder.root, seconds=seconds)
    found = tuple(violation(rule, selected[hit.index], hit, scanner.message) for hit in hits)
    cache.put(key, found)
    return found


def _key(rule: Rule, inputs: dict[str, str]) -> str:
    said = json.dumps(asdict(rule), sort_keys=True, default=str)
    parts = [said, *(f"{path}\0{digest_of(text)}" for path, text in sorted(inputs.items()))]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _wants_files(scanner: Scanner | None) -> bool:
    return scanner is not None and (scanner.target.kind == "file" or isinstance(scanner, CommandScanner))


def _globs(scanner: Scanner) -> tuple[str, ...]:
    return scanner.files if isinstance(scanner, (RegexScanner, PythonScanner, CommandScanner)) else ()


def _read_graphs(artifacts: Artifacts) -> tuple[list[GraphFile], list[Violation]]:
    """The graphs that keep the schema, and a violation for each place where one does not."""
    graphs: list[GraphFile] = []
    violations: list[Violation] = []
    for path in dict.fromkeys(artifacts.graphs):
        try:
            file = read_document(artifacts.folder, path)
        except NotFound:
            continue
        except InvalidArguments as error:
            line = int(error.fields.get("line", 1))
            violations.append(_against_graph(path, line, error.message, "/"))
            continue
        broken = [_broken(file, each.pointer, each.message) for each in problems_of(file.graph)]
        violations.extend(broken)
        if not broken:
            graphs.append(file)
    return graphs, violations


def _broken(file: GraphFile, pointer: tuple[str | int, ...], message: str) -> Violation:
    where = "/" + "/".join(str(piece) for piece in pointer)
    return _against_graph(file.path, nearest_line(file, pointer), message, where)


def _against_graph(path: str, line: int, message: str, where: str) -> Violation:
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
        if (text := _text_of(artifacts.folder, entry.path)) is not None:
            texts[entry.path] = text
    return texts, refused


def _text_of(folder: SealedFolder, path: str) -> str | None:
    """A file's text; None for pictures and other files that no rule for texts is about."""
    try:
        return folder.read_text(path, limit=MAX_SCANNED)
    except (PathRefused, NotFound):
        return None
