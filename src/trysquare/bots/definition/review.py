"""Review of a loaded bot: mistakes that nothing but the definition as a whole shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TypeVar

from trysquare.bots.definition.findings import Finding
from trysquare.bots.definition.folder import BotFolder, line_of, nearest
from trysquare.bots.definition.model import BehaviorDefinition, BotDefinition, KnowledgeConfig, RenderConfig
from trysquare.bots.documents.base import DocumentType
from trysquare.bots.documents.formats import DocumentError
from trysquare.bots.documents.names import unknown_names
from trysquare.bots.documents.paths import unknown_name
from trysquare.bots.documents.shapes import schema_problems
from trysquare.bots.documents.story import StoryGraph
from trysquare.bots.rendering.carried import not_carried
from trysquare.bots.scanners.base import FILE, PATH, CommandScanner, Problem, Rule
from trysquare.bots.scanners.runner import self_test
from trysquare.core.errors import ToolError
from trysquare.core.json import JsonObject

_HTML = (".html", ".htm")
Known = TypeVar("Known")


def review(definition: BotDefinition, folder: BotFolder) -> list[Finding]:
    """Every mistake of a bot that could be loaded, besides those of its workflow."""
    return [
        *_rules(definition, folder),
        *_behaviors(definition, folder),
        *_texts(definition, folder),
        *_unused(folder, definition),
    ]


def _finding(folder: BotFolder, code: str, file: str, message: str, remedy: str, *, key: str | None = None) -> Finding:
    """A warning at the line of a key or value of its file."""
    line = line_of(folder.text(file), key) if key is not None and file in folder.files else 1
    return Finding(code=code, severity="warning", file=file, line=line, message=message, remedy=remedy)


def _rules(definition: BotDefinition, folder: BotFolder) -> Iterator[Finding]:
    everywhere = [each for behavior in definition.behaviors for each in behavior.content.knowledge]
    for rule in definition.rules:
        yield from _rule(rule, everywhere, folder)
    for behavior in definition.behaviors:
        for rule in behavior.rules:
            yield from _rule(rule, behavior.content.knowledge, folder)


def _rule(rule: Rule, configs: Sequence[KnowledgeConfig], folder: BotFolder) -> Iterator[Finding]:
    if rule.scanner is None:
        return
    for problem in self_test(rule):
        yield _failed_example(rule, problem, folder)
    if not rule.dont.examples:
        message = "The scanner has no example under `dont`, so nothing shows that it finds anything."
        yield _finding(folder, "untested_rule", rule.file, message, "Add `dont.examples`.", key="scanner")
    target = rule.scanner.target
    if target.kind != FILE and not isinstance(rule.scanner, CommandScanner):
        yield from _target(rule, configs, folder)
    elif target.document is not None:
        message = "A rule of the target `file` reads files, and no document."
        yield _finding(folder, "unused_key", rule.file, message, "Remove `document`, or use `files`.", key="document")


def _failed_example(rule: Rule, problem: Problem, folder: BotFolder) -> Finding:
    text = problem.message.rpartition(": ")[2]
    remedy = "Correct the scanner or the example."
    found = _finding(folder, "rule_example", rule.file, problem.message, remedy, key=text)
    return Finding(
        code=found.code, file=found.file, line=found.line, message=found.message, remedy=remedy, severity="error"
    )


def _target(rule: Rule, configs: Sequence[KnowledgeConfig], folder: BotFolder) -> Iterator[Finding]:
    assert rule.scanner is not None
    target = rule.scanner.target
    named = [each for each in configs if target.document in (None, each.name)]
    if target.document is not None and not named:
        hint = nearest(target.document, [each.name for each in configs]) if configs else "Remove `document`."
        message = f"No behavior with this rule builds a document `{target.document}`."
        yield _finding(folder, "unknown_name", rule.file, message, hint, key="document")
        return
    if target.kind != PATH and not any(target.kind in each.type.targets for each in named):
        message = f"No document of this rule has `{target.kind}`, so it never finds anything."
        remedy = "Use a JSONPath such as `$.items[*].name`, or build a document that has it."
        yield _finding(folder, "unused_rule", rule.file, message, remedy, key="applies_to")
    if target.kind == PATH:
        yield from _path(rule, target.field or "$", [each.type for each in named], folder)


def _path(rule: Rule, path: str, kinds: Sequence[DocumentType], folder: BotFolder) -> Iterator[Finding]:
    """A path with a name that none of its documents has."""
    schemas = [schema for kind in kinds if (schema := _known(kind.value_schema)) is not None]
    names = [unknown_name(path, schema) for schema in schemas]
    if not kinds:
        message = "No behavior with this rule builds a document, so it never finds anything."
        yield _finding(folder, "unused_rule", rule.file, message, "Add a build_*.json.", key="applies_to")
    elif names and len(schemas) == len(kinds) and all(name is not None for name in names):
        message = f"`{path}`: no document has `{names[0]}` there."
        remedy = "Correct the path, or add the name to the template or the schema."
        yield _finding(folder, "unknown_path", rule.file, message, remedy, key="applies_to")


def _behaviors(definition: BotDefinition, folder: BotFolder) -> Iterator[Finding]:
    taken: dict[str, str] = {}
    built = {each.output for behavior in definition.behaviors for each in behavior.content.knowledge}
    for behavior in definition.behaviors:
        yield from _documents(behavior, folder)
        for render in behavior.content.renders:
            yield from _render(render, folder)
            yield from _same_output(render, behavior, taken, built, folder)
        yield from _synchronizations(behavior, folder)


def _documents(behavior: BehaviorDefinition, folder: BotFolder) -> Iterator[Finding]:
    names = dict[str, str]()
    for config in behavior.content.knowledge:
        if names.setdefault(config.name, config.file) != config.file:
            message = f"The name `{config.name}` is taken by {names[config.name]}."
            yield _finding(folder, "duplicate_name", config.file, message, "Rename one of them.", key="name")
        if type(config.type) not in (DocumentType, StoryGraph):
            yield from _own_type(config)
        elif config.type.schema is not None and config.template is not None:
            yield from _template_of(config, config.type.schema, folder)


def _known(schema: Callable[[], Known | None]) -> Known | None:
    """A schema; None where a type of the bot's own fails, which is reported once."""
    try:
        return schema()
    except ToolError:
        return None


def _own_type(config: KnowledgeConfig) -> Iterator[Finding]:
    """What goes wrong when a type of the bot's own reads the template of its document."""
    kind, text = config.type, config.template_text
    try:
        kind.value_schema()
        kind.view_schema()
        if text is None:
            return
        value = kind.parse(text)
        kind.view(value)
        kind.lines(text)
        list(kind.problems(value))
        for target in kind.targets:
            list(kind.select(target, value))
        for builder in kind.builders:
            kind.build(builder, value)
    except DocumentError as error:
        file, message = config.template or config.file, f"The type {kind.name} cannot read its template: {error}."
        remedy = "Correct the template, or `parse` of the type."
        yield Finding(code="not_parsed", file=file, line=error.line, message=message, remedy=remedy)
    except ToolError as error:
        code: JsonObject = error.fields.get("code", {"file": config.file, "line": 1})
        remedy = f"Correct the type {kind.name}."
        yield Finding(code="type_failed", **code, message=error.message, remedy=remedy)


_OF_NAMES = ("is a required property", "were unexpected)", "was unexpected)")


def _template_of(config: KnowledgeConfig, schema: JsonObject, folder: BotFolder) -> Iterator[Finding]:
    """Names by which a template breaks its own schema; its values may be placeholders."""
    assert config.template is not None
    for pointer, message in schema_problems(schema, config.type.shape):
        if message.endswith(_OF_NAMES):
            lines = config.type.lines(config.template_text or "")
            line = next((lines[pointer[:end]] for end in range(len(pointer), -1, -1) if pointer[:end] in lines), 1)
            yield Finding(
                code="template_schema",
                severity="warning",
                file=config.template,
                line=line,
                message=f"The template breaks the schema {config.schema_file}: {message}.",
                remedy="Correct the template or the schema.",
            )


def _render(render: RenderConfig, folder: BotFolder) -> Iterator[Finding]:
    """Names in a template that its document never has."""
    schema = _known(render.seen_schema)
    if render.template_text is None or render.template is None or schema is None:
        return
    for name in unknown_names(render.template_text, *schema):
        file, line = _place(folder, render.template, name)
        yield Finding(
            code="unknown_name_in_template",
            severity="warning",
            file=file,
            line=line,
            message=f"The document {render.input} has no `{name}`.",
            remedy="Correct the name, or add it to the schema or the template of the document.",
        )


def _place(folder: BotFolder, template: str, name: str) -> tuple[str, int]:
    """The template or partial that has a tag of that name, and its line."""
    partials = [path for path in folder.files if "templates/" in path and path != template]
    for path in (template, *partials):
        for number, line in enumerate(folder.text(path).splitlines(), start=1):
            inside = line.replace("{", " ").replace("}", " ").replace("#", " ").replace("^", " ").replace("&", " ")
            if name in inside.split() and "{{" in line:
                return path, number
    return template, 1


def _same_output(
    render: RenderConfig, behavior: BehaviorDefinition, taken: dict[str, str], built: set[str], folder: BotFolder
) -> Iterator[Finding]:
    if render.output in built:
        message = f"The page would overwrite the document {render.output}."
        yield _finding(folder, "same_output", render.file, message, "Choose another `output`.", key="output")
    own = f"{render.input} {render.template} {render.builder}"
    known = taken.setdefault(render.output, f"{render.file}\n{own}")
    first, _, other = known.partition("\n")
    # Several behaviors may render the same page of the same document.
    if first != render.file and other.rpartition("/")[2] != own.rpartition("/")[2]:
        message = f"{first} writes the same file {render.output}."
        yield _finding(folder, "same_output", render.file, message, "Choose another `output`.", key="output")


def _synchronizations(behavior: BehaviorDefinition, folder: BotFolder) -> Iterator[Finding]:
    renders = {each.name: each for each in behavior.content.renders}
    for config in behavior.content.synchronizations:
        render = renders[config.render]
        shows_many = "*" in render.input and "*" not in render.output and render.each is None
        if render.template_text is None or render.output.endswith(_HTML) or shows_many:
            what = "a picture" if render.template_text is None else "HTML" if not shows_many else "about many documents"
            message = f"The page `{render.name}` is {what}, which cannot be read back."
            yield _finding(folder, "not_carried", config.file, message, "Remove this file.", key="render")
        elif config.carries:
            yield from _carries(config.file, config.carries, render, folder)


def _carries(file: str, names: Iterable[str], render: RenderConfig, folder: BotFolder) -> Iterator[Finding]:
    """Names that `carries` promises and the template cannot read back."""
    lost = {each.name: each for each in not_carried(render.template_text or "")}
    for name in names:
        if name in lost:
            message = f"`{name}` is not carried back: {lost[name].why} ({render.template})."
            yield _finding(folder, "not_carried", file, message, "Show it in a line with other text.", key=name)


def _texts(definition: BotDefinition, folder: BotFolder) -> Iterator[Finding]:
    """Actions that say nothing to whoever works on them."""
    for action in definition.actions:
        additions = [behavior.additions.get(action.name) for behavior in definition.behaviors]
        if action.instructions or all(each is not None and each.instructions for each in additions):
            continue
        message = f"The action {action.name} has no instructions, so an agent does not know what to do."
        own = f"{action.folder}/action_config.json"
        if own in folder.files:
            remedy = f'Write {action.folder}/instructions.json: {{"instructions": ["…"]}}.'
            yield _finding(folder, "no_instructions", own, message, remedy)
        else:
            config = next(path for path in folder.files if path.endswith("bot_config.json"))
            remedy = f'Add "instructions": ["…"] to `{action.name}` in `actions`.'
            yield _finding(folder, "no_instructions", config, message, remedy, key=action.name)


def _unused(folder: BotFolder, definition: BotDefinition) -> Iterator[Finding]:
    """Files of content folders that nothing refers to: most often a misspelled name."""
    used = set(folder.used)
    kinds: tuple[tuple[str, str], ...] = (
        ("knowledge_graph", "build_"),
        ("render", "render_"),
        ("synchronize", "synchronize_"),
    )
    for path in sorted(folder.files):
        parts = PurePosixPath(path).parts
        kind = next((each for each in kinds if any(part.endswith(each[0]) for part in parts[:-1])), None)
        if path in used or (kind is None and parts[0] not in ("templates", "types", "scanners")):
            continue
        prefix = "" if kind is None else f", or begin its name with `{kind[1]}`"
        message = "Nothing uses this file."
        yield _finding(
            folder, "unused_file", path, message, f"Correct the name where it is meant{prefix}, or remove it."
        )
