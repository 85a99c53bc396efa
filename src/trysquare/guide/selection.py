"""Select documents by expression, in order, with the reason for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from trysquare.core.errors import ErrorCode, NotFound
from trysquare.core.text import closest_names
from trysquare.files.globs import compile_glob
from trysquare.guide.documents import Content, Document, DocumentId, OrderedDocuments
from trysquare.guide.expression import Expression, ExpressionError, Named, Operand, Part, parse_expression

MAX_COLLECTION_DEPTH = 16
MAX_COLLECTIONS_OPENED = 1_000
"""Collections that hold one another many times over would otherwise be opened beyond counting."""
MAX_WARNINGS = 20

_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """A document that was chosen, and the part of the expression that chose it."""

    document: Document
    because: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """What an expression means: documents in order, without duplicates, and what was noticed on the way."""

    chosen: tuple[Chosen, ...]
    excluded: tuple[Chosen, ...] = ()
    warnings: tuple[str, ...] = ()


def select(expression: Expression, content: Content) -> Selection:
    """Select documents; an unknown name or a part without matches is an error with the nearest names."""
    return _Selecting(content).run(expression)


@dataclass
class _Selecting:
    """One evaluation: what was found so far, and which collections are open."""

    content: Content
    warnings: dict[str, None] = field(default_factory=dict[str, None])
    """In order, each once."""
    open_collections: list[str] = field(default_factory=list[str])
    opened: int = 0
    refused: int = 0
    whole: dict[str, list[Document]] = field(default_factory=dict[str, list[Document]])
    """Collections that were opened without meeting a limit or themselves: what they hold is the same everywhere."""

    def run(self, expression: Expression) -> Selection:
        wanted: dict[DocumentId, Chosen] = {}
        excluded: dict[DocumentId, Chosen] = {}
        for part in expression.parts:
            found = self._part(part)
            if not found and not part.exclude:
                raise self._nothing(part)
            if not found:
                self.warnings[f"`{_short(str(part))}` excludes nothing."] = None
            target, because = excluded if part.exclude else wanted, str(part)
            for document in found:
                target.setdefault(document.id, Chosen(document=document, because=because))
        kept = tuple(chosen for key, chosen in wanted.items() if key not in excluded)
        if not kept:
            raise NotFound(
                "The expression excludes all that it names.",
                code=ErrorCode.RESOURCE_NOT_FOUND,
                instruction="Exclude less: what follows `-` is removed from the whole result.",
            )
        taken = tuple(chosen for key, chosen in excluded.items() if key in wanted)
        return Selection(chosen=kept, excluded=taken, warnings=tuple(self.warnings)[:MAX_WARNINGS])

    def _part(self, part: Part) -> list[Document]:
        first, *others = (self._operand(operand) for operand in part.operands)
        shared = [{document.id for document in found} for found in others]
        return [document for document in first if all(document.id in ids for ids in shared)]

    def _operand(self, operand: Operand) -> list[Document]:
        if not isinstance(operand, Named):
            return list(self.content.tagged(operand.tag))
        collection = self.content.collection(operand.name)
        category = self.content.category(operand.name)
        # Inside a collection a name that is both means the category, so that `docs` may hold the category `docs`.
        if collection is not None and not (self.open_collections and category is not None):
            return self._collection(operand, collection.expressions)
        if category is None:
            raise self._unknown(operand)
        documents = self.content.documents(category.name)
        if not operand.patterns:
            return list(documents)
        found = _matching(documents, operand.patterns)
        if found and len(operand.patterns) > 1:
            for pattern in operand.patterns:
                if not _matching(documents, (pattern,)):
                    self.warnings[f"Nothing in `{category.name}` matches `{_short(pattern)}`."] = None
        return found

    def _collection(self, operand: Named, expressions: Sequence[str]) -> list[Document]:
        found = self.whole.get(operand.name)
        if found is None:
            found = self._opened_collection(operand.name, expressions)
        if not operand.patterns:
            return found
        fits = [_matcher(pattern) for pattern in operand.patterns]
        return [each for each in found if any(fit(each.id.name) for fit in fits)]

    def _opened_collection(self, name: str, expressions: Sequence[str]) -> list[Document]:
        refusal = self._refusal(name)
        if refusal is not None:
            self.warnings[refusal] = None
            self.refused += 1
            return []
        self.opened += 1
        refused_before = self.refused
        self.open_collections.append(name)
        try:
            found = _unique(each for text in expressions for each in self._member(name, text))
        finally:
            self.open_collections.pop()
        if self.refused == refused_before:
            self.whole[name] = found
        return found

    def _refusal(self, name: str) -> str | None:
        """Why a collection cannot be opened here."""
        if name in self.open_collections:
            cycle = " > ".join([*self.open_collections, name])
            return f"Collection `{name}` contains itself ({cycle}); the inner one was left out."
        if len(self.open_collections) >= MAX_COLLECTION_DEPTH:
            return f"Collections are nested deeper than {MAX_COLLECTION_DEPTH}; the rest was left out."
        if self.opened >= MAX_COLLECTIONS_OPENED:
            return f"More than {MAX_COLLECTIONS_OPENED:,} collections would be opened; the rest was left out."
        return None

    def _member(self, collection: str, text: str) -> list[Document]:
        """The documents of one expression of a collection; one that fails is reported, and the others still count."""
        try:
            expression = parse_expression(text)
            wanted = [each for part in expression.parts if not part.exclude for each in self._part(part)]
            taken = {each.id for part in expression.parts if part.exclude for each in self._part(part)}
        except (ExpressionError, NotFound) as error:
            self.warnings[f"Collection `{collection}`, `{_short(text)}`: {error.message}"] = None
            return []
        return [each for each in wanted if each.id not in taken]

    def _unknown(self, operand: Named) -> NotFound:
        known = [each.name for each in (*self.content.categories(), *self.content.collections())]
        close = closest_names(operand.name, known, count=3)
        hint = f" Did you mean {_quoted(close)}?" if close else f" Known: {_quoted(known) or 'none'}."
        return NotFound(
            f"Unknown category or collection `{_short(operand.name)}`.{hint}",
            code=ErrorCode.RESOURCE_NOT_FOUND,
            instruction="Use one of these names, or list the content first.",
            fields={"position": operand.position, "nearest": close},
        )

    def _nothing(self, part: Part) -> NotFound:
        names = [operand.name for operand in part.operands if isinstance(operand, Named)]
        known = [each.id.name for name in names if self.content.category(name) for each in self.content.documents(name)]
        wanted = [pattern for operand in part.operands if isinstance(operand, Named) for pattern in operand.patterns]
        # A pattern is mostly the last piece of a name, so both are compared.
        candidates = {**{name.rpartition("/")[2]: name for name in reversed(known)}, **{name: name for name in known}}
        close = [candidates[near] for pattern in wanted for near in closest_names(pattern, candidates, count=3)]
        hint = f" Did you mean {_quoted(close[:3])}?" if close else ""
        return NotFound(
            f"Nothing matches `{_short(str(part))}`.{hint}",
            code=ErrorCode.RESOURCE_NOT_FOUND,
            instruction="Correct the pattern, or list the documents of the category first.",
            fields={"nearest": close[:3]},
        )


def matches(name: str, pattern: str) -> bool:
    """Whether a document's name fits a pattern: `*` and `?` as in file names, the ending optional, case ignored.

    A pattern without `/` also fits the last piece of a name, so that `python` finds `backend/python`; one that ends in
    `/` fits everything below that folder.
    """
    return _matcher(pattern)(name)


def _matching(documents: Sequence[Document], patterns: Sequence[str]) -> list[Document]:
    """The documents that fit any pattern, in the order of the patterns."""
    ordered = documents if isinstance(documents, OrderedDocuments) else OrderedDocuments(documents)
    trimmed = [_trimmed(pattern) for pattern in patterns]
    # Categories are large, and most patterns have no wildcard: those are looked up.
    return _unique(
        document
        for pattern in trimmed
        for document in (_fitting(ordered, pattern) if _WILD.search(pattern) else ordered.by_name.get(pattern, ()))
    )


def _fitting(documents: OrderedDocuments, pattern: str) -> Iterator[Document]:
    fits = _compiled(pattern).fullmatch
    return (document for document, name in zip(documents, documents.lower_names, strict=True) if fits(name))


def _matcher(pattern: str) -> Callable[[str], bool]:
    fits = _compiled(_trimmed(pattern)).fullmatch
    return lambda name: fits(name.lower()) is not None


def _trimmed(pattern: str) -> str:
    text = pattern.strip().lower().removesuffix(".md")
    return f"{text}*" if text.endswith("/") else text


def _compiled(pattern: str) -> re.Pattern[str]:
    # Matched against names that the library made itself, so `..` in a pattern can never lead outside.
    return compile_glob(pattern, crossing=True, extended=True, anywhere="/" not in pattern)


def _unique(documents: Iterable[Document]) -> list[Document]:
    """The documents in order, each once: the first occurrence counts."""
    seen: dict[DocumentId, Document] = {}
    for document in documents:
        seen.setdefault(document.id, document)
    return list(seen.values())


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in list(names)[:20])


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
