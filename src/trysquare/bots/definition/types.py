"""The types of a bot's documents: named, inferred, or of the bot's own; and the templates of its pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import PurePosixPath
from typing import Any

from trysquare.bots.definition import model
from trysquare.bots.definition.findings import DefinitionError
from trysquare.bots.definition.folder import BotFolder, nearest, parse_json
from trysquare.bots.definition.programs import digest_of_tree, parsed, use_with_imports
from trysquare.bots.documents.base import ENDINGS, DocumentType, Format
from trysquare.bots.documents.formats import DocumentError, parse
from trysquare.bots.documents.own import TypeSource, read_type
from trysquare.bots.documents.story import StoryGraph
from trysquare.bots.graph import problems_of
from trysquare.bots.rendering.mustache import TemplateError, expand_partials, partials_of, template_problems
from trysquare.bots.scanners.kinds import checked_schema
from trysquare.core.errors import ConfigurationError, ToolError
from trysquare.core.json import JsonObject

STORY_GRAPH = "story_graph"
TYPES = "types"
ENTRY_POINTS = "trysquare.document_types"
_FORMATS: Mapping[str, Format] = {"json": "json", "yaml": "yaml", "markdown": "markdown"}
_PARTIALS = "templates"
_ENDINGS = ("", ".md", ".mustache", ".html")


def document_type(
    folder: BotFolder,
    where: str,
    named: str | None,
    path: str,
    *,
    template: str | None = None,
    schema_file: str | None = None,
) -> DocumentType:
    """The type of a document: the one that the config names, a story graph by its template, or by the file's ending."""
    own = None if named is None or named in _FORMATS else _named(folder, where, named)
    form = _format(folder, where, named, path, own)
    # Each is read by itself, so that a mistake in one does not hide those of the other.
    read = template is not None and (own is None or own.parse is DocumentType.parse)
    shape = folder.attempt(lambda: _shape(folder, str(template), form), None) if read else None
    schema = None if schema_file is None else folder.attempt(lambda: _schema(folder, schema_file), None)
    if own is None and named is None and schema is None and form == "json" and _is_graph(shape):
        return StoryGraph(shape=shape)
    if own is None:
        return DocumentType(name=form, format=form, schema=schema, shape=shape)
    return own(name=str(named), format=form, schema=schema, shape=shape)


def _named(folder: BotFolder, where: str, name: str) -> type[DocumentType]:
    """A type by its name: built in, in `types/` of the bot, or of an installed package."""
    if name not in folder.types:
        path = f"{TYPES}/{name}.py"
        folder.types[name] = _written(folder, path) if path in folder.files else _installed(folder, where, name)
    return folder.types[name]


def _written(folder: BotFolder, path: str) -> type[DocumentType]:
    """A type of the bot's folder, which is not run for this."""
    use_with_imports(folder, path)
    digest = digest_of_tree(folder, TYPES)
    source = TypeSource(bot=folder.root.resolve(), file=path, name=PurePosixPath(path).stem, digest=digest)
    try:
        return read_type(source, parsed(folder, path))
    except ValueError as error:
        hint = "Write one `class Name(DocumentType):`, with `format`, `targets` and `builders` as literals."
        raise folder.error(path, f"{_sentence(error)}.", hint=hint, code="invalid_type") from None


def _installed(folder: BotFolder, where: str, name: str) -> type[DocumentType]:
    """A type that a package brings along as an entry point."""
    found = next(iter(entry_points(group=ENTRY_POINTS, name=name)), None)
    if found is None:
        written = [PurePosixPath(each).stem for each in folder.files if each.startswith(f"{TYPES}/")]
        hint = f"{nearest(name, (*_FORMATS, STORY_GRAPH, *written))} A type of your own is in {TYPES}/{name}.py."
        raise folder.error(where, f"Unknown `type` `{name}`.", hint=hint, key="type", code="unknown_name")
    try:
        kind: object = found.load()
    except (ImportError, AttributeError) as error:
        message = f"The document type `{name}` of `{found.value}` cannot be imported: {error}."
        raise folder.error(where, message, hint="Repair its package.", key="type", code="invalid_type") from None
    if not isinstance(kind, type) or not issubclass(kind, DocumentType):
        message = f"`{found.value}` is not a subclass of DocumentType."
        raise folder.error(where, message, hint="Repair its package.", key="type", code="invalid_type")
    return kind


def _format(folder: BotFolder, where: str, named: str | None, path: str, own: type[DocumentType] | None) -> Format:
    if named is not None and named in _FORMATS:
        return _FORMATS[named]
    ending = PurePosixPath(path).suffix
    if own is not None:
        default: Format = vars(own).get("format", DocumentType.format)
        return default if "format" in vars(own) else ENDINGS.get(ending, default)
    if ending not in ENDINGS:
        raise _unknown_format(folder, where, path, "output")
    return ENDINGS[ending]


def _unknown_format(folder: BotFolder, where: str, path: str, key: str) -> ConfigurationError:
    hint = f"End it in {', '.join(ENDINGS)}, or set `type` to {', '.join(_FORMATS)}, or to a type of your own."
    message = f"The format of `{path}` is unknown."
    return folder.error(where, message, key=key, code="unknown_format", hint=hint)


def input_type(folder: BotFolder, where: str, named: str | None, builder: str | None, path: str) -> DocumentType:
    """The type of a page's document, as far as the page tells; `resolve_types` knows the behavior that builds it."""
    named = named or (STORY_GRAPH if builder in StoryGraph.builders else None)
    if named is None and PurePosixPath(path).suffix not in ENDINGS:
        return DocumentType(name="")
    return document_type(folder, where, named, path)


def _shape(folder: BotFolder, template: str, form: Format) -> Any:
    text = folder.text(template)
    if form == "json":
        return parse_json(text, where=folder.location(template))
    try:
        return parse(form, text)
    except DocumentError as error:
        where = f"{folder.location(template)}:{error.line}"
        raise DefinitionError(f"{_sentence(error)}.", code="not_parsed", where=where) from None


def _sentence(error: Exception) -> str:
    text = str(error)
    return text[:1].upper() + text[1:]


def _schema(folder: BotFolder, path: str) -> JsonObject:
    if path.endswith((".yaml", ".yml")):
        found: Any = _shape(folder, path, "yaml")
    else:
        found = parse_json(folder.text(path), where=folder.location(path))
    try:
        if not isinstance(found, dict):
            raise ValueError("a JSON Schema is an object")
        return checked_schema(found)  # pyright: ignore[reportUnknownArgumentType]
    except ValueError as error:
        raise folder.error(path, f"{_sentence(error)}.", hint="Correct the schema.", code="invalid_schema") from None


def _is_graph(shape: Any) -> bool:
    try:
        return isinstance(shape, dict) and not problems_of(shape)
    except (ValueError, RecursionError, ToolError):
        return False


def page_template(folder: BotFolder, path: str) -> str:
    """The text of a page's template, with its partials in their places; every mistake is reported."""
    text, partials = folder.text(path), dict[str, str]()
    before = len(folder.errors)
    _collect(folder, path, text, partials, ())
    if len(folder.errors) > before:
        return ""
    try:
        return expand_partials(text, partials)
    except TemplateError as error:
        hint = "Shorten it, or end the chain of partials."
        raise folder.error(path, error.message, hint=hint, code="invalid_template") from None


def _collect(folder: BotFolder, path: str, text: str, partials: dict[str, str], above: tuple[str, ...]) -> None:
    for problem in template_problems(text):
        message = f"{problem.message[:1].upper()}{problem.message[1:]}."
        _report(folder, path, problem.line, message, "Correct the template.", "invalid_template")
    for name, line in partials_of(text):
        found = _partial(folder, path, name)
        if found is None:
            known = [PurePosixPath(each).stem for each in folder.files if f"/{_PARTIALS}/" in f"/{each}"]
            hint = (
                f"Put it beside the template, or into {_PARTIALS}/ of the bot. {nearest(name, known) if known else ''}"
            )
            _report(folder, path, line, f"Unknown partial `{name}`.", hint.strip(), "unknown_partial")
        elif found in above or found == path:
            _report(folder, path, line, f"The partial `{name}` includes itself.", "End the chain.", "invalid_template")
        elif name not in partials:
            partials[name] = folder.text(found)
            _collect(folder, found, partials[name], partials, (*above, path))


def _report(folder: BotFolder, path: str, line: int, message: str, hint: str, code: str) -> None:
    error = DefinitionError(message, code=code, where=f"{folder.location(path)}:{line}", hint=hint)
    # A partial, or a template of several behaviors, is read more than once.
    if str(error) not in map(str, folder.errors):
        folder.report(error)


def _partial(folder: BotFolder, path: str, name: str) -> str | None:
    beside = PurePosixPath(path).parent
    places = (beside / name, PurePosixPath(_PARTIALS) / name)
    return next((f"{at}{end}" for at in places for end in _ENDINGS if f"{at}{end}" in folder.files), None)


def resolve_types(
    folder: BotFolder, behaviors: Sequence[model.BehaviorDefinition]
) -> tuple[model.BehaviorDefinition, ...]:
    """The behaviors, where each config of a document knows what the others say of it."""
    configs = [each for behavior in behaviors for each in behavior.content.knowledge]
    # Several templates may describe parts of one graph; one that is a whole graph is enough.
    graphs = {each.output for each in configs if isinstance(each.type, StoryGraph)}
    built = {each.output: each for each in configs}
    return tuple(_resolved(folder, each, graphs, built) for each in behaviors)


def _resolved(
    folder: BotFolder,
    behavior: model.BehaviorDefinition,
    graphs: set[str],
    built: dict[str, model.KnowledgeConfig],
) -> model.BehaviorDefinition:
    content = behavior.content
    knowledge = tuple(
        replace(each, type=StoryGraph(shape=each.type.shape)) if each.output in graphs and not each.declared else each
        for each in content.knowledge
    )
    own = {each.output: each for each in knowledge}
    renders = tuple(
        _with_type(folder, each, own.get(each.input, built.get(each.input)), graphs) for each in content.renders
    )
    return replace(behavior, content=replace(content, knowledge=knowledge, renders=renders))


def _with_type(
    folder: BotFolder, render: model.RenderConfig, config: model.KnowledgeConfig | None, graphs: set[str]
) -> model.RenderConfig:
    kind = render.type if config is None else StoryGraph() if render.input in graphs else config.type
    if not kind.name:
        folder.report(_unknown_format(folder, render.file, render.input, "input"))
        return render
    if render.builder is not None and render.builder not in kind.builders:
        known = kind.builders
        hint = nearest(render.builder, known) if known else f"The type {kind.name} has none; use a `template`."
        message = f"Unknown `builder` `{render.builder}`."
        folder.report(folder.error(render.file, message, hint=hint, key="builder", code="unknown_name"))
    return replace(render, type=kind)
