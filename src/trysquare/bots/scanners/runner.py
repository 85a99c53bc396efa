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
from typing import Any, Literal, TypeAlias, cast

from trysquare.bots.documents.base import Document, DocumentType, Node
from trysquare.bots.documents.paths import select_path
from trysquare.bots.documents.store import expand, read_document
from trysquare.bots.graph import digest_of
from trysquare.bots.scanners.base import (
    FILE,
    PATH,
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
MISSING_RULE = "missing_document"
"""The implicit rule that a required document exists."""

State: TypeAlias = Literal["valid", "invalid", "missing", "absent"]
"""`missing` is a required document that does not exist, `absent` one that need not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A document that rules read, or many, as the definition names it."""

    path: str
    type: DocumentType
    name: str = ""
    required: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Artifacts:
    folder: DirectoryRoot
    documents: tuple[Source, ...] = ()
    files: tuple[str, ...] | None = None
    """Files or globs for file rules; None for every file of the folder."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Loaded:
    """A valid document with its source."""

    source: Source
    document: Document


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanReport:
    violations: tuple[Violation, ...] = ()
    problems: tuple[Problem, ...] = ()
    scanned: tuple[str, ...] = ()
    documents: tuple[tuple[str, State], ...] = ()
    """Every document of the definition, and how it is."""

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
    loaded, violations, states = _read_documents(artifacts)
    problems: list[Problem] = []
    texts, refused = _read_files(artifacts) if any(_wants_files(rule.scanner) for rule in scanned) else ({}, [])
    for rule in scanned:
        try:
            violations.extend(_scan_rule(rule, loaded, texts, artifacts, cache, seconds))
        except ScannerFailed as error:
            problems.append(Problem(rule=rule.name, file=rule.file, message=f"The rule could not be applied: {error}."))
    return ScanReport(
        violations=tuple(sorted(violations, key=lambda each: (each.severity, each.file, each.line, each.rule))),
        problems=(*problems, *refused),
        scanned=(*dict.fromkeys(each.document.path for each in loaded), *texts),
        documents=tuple(states.items()),
    )


def _scan_rule(
    rule: Rule,
    loaded: Sequence[_Loaded],
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
        named = [each for each in loaded if scanner.target.document in (None, each.source.name)]
        # Several configs may be about one document.
        read = {(each.document.path, each.source.type.name): each for each in named}.values()
        inputs = {each.document.path: each.document.text for each in read}
        selected = [found for each in read for found in _select(scanner.target, each)]
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


def _select(target: Target, loaded: _Loaded) -> list[Selected]:
    """Every value that the target names in a document."""
    document = loaded.document
    if target.kind == PATH:
        try:
            nodes = list(select_path(target.field or "$", document.value))
        except InvalidArguments as error:
            raise ScannerFailed(
                f"{document.path}: {error.message.rstrip('.')}. {error.instruction}".rstrip(".")
            ) from None
    elif target.kind in loaded.source.type.targets:
        nodes = loaded.source.type.select(target.kind, document.value)
        nodes = nodes if target.field is None else [each for node in nodes for each in _field(node, target.field)]
    else:
        return []
    return [
        Selected(value=value, file=document.path, line=document.line(pointer), where=where)
        for pointer, value, where in nodes
    ]


def _field(node: Node, name: str) -> list[Node]:
    """A field of a node; of a list, each of its items."""
    pointer, holder, where = node
    value: Any = cast("dict[str, Any]", holder).get(name) if isinstance(holder, dict) else None
    if isinstance(value, list):
        return [((*pointer, name, index), item, where) for index, item in enumerate(cast("list[Any]", value))]
    return [] if value is None else [((*pointer, name), value, where)]


def matches(path: str, globs: tuple[str, ...]) -> bool:
    """Whether a path matches one of the globs, or there are none."""
    return not globs or any(file_matches(path, each) for each in globs)


def _key(rule: Rule, inputs: dict[str, str]) -> str:
    text = json.dumps(asdict(rule), sort_keys=True, default=str)
    parts = [text, *(f"{path}\0{digest_of(text)}" for path, text in sorted(inputs.items()))]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _wants_files(scanner: Scanner | None) -> bool:
    return scanner is not None and (scanner.target.kind == FILE or isinstance(scanner, CommandScanner))


def _read_documents(artifacts: Artifacts) -> tuple[list[_Loaded], list[Violation], dict[str, State]]:
    """The valid documents, violations of the others, and how each is."""
    loaded: list[_Loaded] = []
    violations: list[Violation] = []
    states: dict[str, State] = {}
    for source in artifacts.documents:
        paths = expand(artifacts.folder, source.path)
        for path in paths or [source.path]:
            document, found = _read(artifacts.folder, path, source)
            if found is None:
                states.setdefault(path, "missing" if source.required else "absent")
                violations.extend([_missing(path, source)] if source.required else [])
                continue
            states[path] = "invalid" if found or states.get(path) == "invalid" else "valid"
            violations.extend(each for each in found if each not in violations)
            if document is not None and not found:
                loaded.append(_Loaded(source=source, document=document))
    return loaded, violations, states


def _read(folder: DirectoryRoot, path: str, source: Source) -> tuple[Document | None, list[Violation] | None]:
    """A document with what is wrong with it; None where there is no such file."""
    kind = source.type
    try:
        document = read_document(folder, path, kind)
        problems = list(kind.problems(document.value))
    except NotFound:
        return None, None
    except (InvalidArguments, PathNotAllowed) as error:
        return None, [_invalid(kind, path, int(error.fields.get("line", 1)), error.message, "/")]
    return document, [
        _invalid(kind, path, document.line(pointer), message, "/" + "/".join(map(str, pointer)))
        for pointer, message in problems
    ]


def _invalid(kind: DocumentType, path: str, line: int, message: str, where: str) -> Violation:
    return Violation(
        rule=kind.name, severity="error", file=path, line=line, message=message, text=where, where=where, whole=True
    )


def _missing(path: str, source: Source) -> Violation:
    what = f"The document `{source.name}`" if source.name else "The document"
    message = f"{what} does not exist. Write it with the action build_knowledge."
    return Violation(rule=MISSING_RULE, severity="error", file=path, line=1, message=message, text=path, whole=True)


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
