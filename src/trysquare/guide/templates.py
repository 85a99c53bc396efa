"""Templates of documents: a Jinja sandbox with bounded rendering."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.guide.documents import Document
from trysquare.guide.flags import FlagValue

try:
    import jinja2
    from jinja2 import TemplateSyntaxError, nodes, pass_context, pass_environment
    from jinja2.exceptions import SecurityError
    from jinja2.runtime import Context, Undefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.visitor import NodeTransformer
except ImportError:
    raise ConfigurationError("Templates need Jinja2.", hint="Install it with: pip install 'trysquare[guide]'") from None

MAX_TEMPLATE = 64 * 1024
MAX_RENDERED = 1_000_000
_FORESEEN = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, SyntaxError, TypeError, ValueError,
)  # fmt: skip
"""What a wrong template can make Python raise."""

Include = Callable[[str], str | None]
"""The text of a document that may be included, by its id; None where there is none."""


class TemplateError(ToolError):
    """A template that cannot be rendered, with its document and line."""

    default_code = ErrorCode.CONFIG_INVALID


def render(
    document: Document, *, flags: Mapping[str, FlagValue], include: Include, values: Mapping[str, Any] | None = None
) -> str:
    """The text to deliver. `values` are what a template sees beside the flags."""
    if not document.metadata.get("template"):
        return document.text
    if len(document.text) > MAX_TEMPLATE:
        raise TemplateError(f"`{document.id}` is longer than the {MAX_TEMPLATE:,} characters that a template may have.")
    about = {
        "id": str(document.id),
        "title": document.title,
        "tags": sorted(document.tags),
        "metadata": dict(document.metadata),
    }
    return _render_template(document, {"flags": _Flags(flags), "document": about, **(values or {})}, include)


class _Flags(dict[str, FlagValue]):
    """Flags as a template sees them: one that is not set is none, not an error."""

    def __missing__(self, name: str) -> None:
        return None


def _render_template(document: Document, values: Mapping[str, Any], include: Include) -> str:
    own, allowed = str(document.id), frozenset(document.includes)
    sandbox = Sandbox(lambda name: document.text if name == own else include(name) if name in allowed else None)
    try:
        return _bounded(sandbox.get_template(own).generate(values), sandbox.check_time)
    except TemplateSyntaxError as error:
        raise TemplateError(f"{_place(document, error.name, error.lineno)}: {error.message}.") from None
    except jinja2.TemplateNotFound as error:
        reason = f"`{error.name}` is not there, or is not named in `includes` of the front matter"
        raise TemplateError(f"{_failing_place(document, error)}: {reason}.") from None
    except (jinja2.TemplateError, *_FORESEEN) as error:
        deep = isinstance(error, RecursionError)
        reason = "it includes itself, or is nested too deeply" if deep else str(error).rstrip(".")[:300]
        raise TemplateError(f"{_failing_place(document, error)}: {reason or type(error).__name__}.") from None


def _bounded(pieces: Iterable[str], check_time: Callable[[], None]) -> str:
    rendered: list[str] = []
    size = 0
    for piece in pieces:
        rendered.append(piece)
        size += len(piece)
        if size > MAX_RENDERED:
            raise ValueError(f"it renders to more than {MAX_RENDERED:,} characters")
        check_time()
    return "".join(rendered)


def _place(document: Document, name: str | None, line: int) -> str:
    own = str(document.id)
    if name in (None, own):
        return f"`{own}` cannot be rendered (line {line + document.first_line - 1})"
    return f"`{own}` cannot be rendered, because of `{name}` that it includes (line {line} of its text)"


def _failing_place(document: Document, error: BaseException) -> str:
    """Where a template was when it failed: its lines are the lines of the frames that carry its name."""
    names = {str(document.id), *document.includes}
    found = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename in names
    ]
    return _place(document, *found[-1]) if found else f"`{document.id}` cannot be rendered"


# A template chooses and repeats: `if`, `for`, `set`, `include`, values, comparisons, a few filters. It cannot call
# anything, so there is no way from a value to Python. Every value that a template makes is measured before it is made
# larger, every turn of a loop is counted, and the time is looked at on the way.


MAX_VALUE = 200_000
"""Characters and members of one value, counted all the way down."""
MAX_NUMBER = 10**30
MAX_TURNS = 100_000
MAX_SECONDS = 2.0

_BUILT_IN = frozenset({
    "abs", "capitalize", "count", "d", "default", "first", "float", "int", "last", "length", "list", "lower", "max",
    "min", "reverse", "sort", "title", "trim", "unique", "upper",
})  # fmt: skip
_OWN = frozenset({"join", "round", "tojson"})
_REFUSED: Mapping[type[nodes.Node], str] = {
    nodes.Call: "calls",
    nodes.Macro: "macros",
    nodes.CallBlock: "calls",
    nodes.FilterBlock: "filter blocks",
    nodes.AssignBlock: "blocks of `set`",
    nodes.Import: "imports",
    nodes.FromImport: "imports",
    nodes.Extends: "parents",
    nodes.Block: "blocks",
    nodes.Pow: "powers",
}
# Names that no template can write, for what the sandbox itself puts in.
_TURN, _CONCAT, _MEASURE = "turn counted", "concatenated", "measured"

Source = Callable[[str], str | None]
"""The text of a template by its name; None where it may not be used."""


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment for one rendering: it counts what that rendering does."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%"})

    def __init__(self, source: Source) -> None:
        super().__init__(
            loader=jinja2.FunctionLoader(lambda name: _loaded(source, name)),
            undefined=jinja2.StrictUndefined,
            autoescape=False,
            keep_trailing_newline=True,
            finalize=self._shown,
        )
        self.globals.clear()
        built_in = {name: self.filters[name] for name in _BUILT_IN}
        own = {"join": _join, "round": _round, "tojson": _tojson}
        self.filters = {**built_in, **own, _TURN: _counted, _CONCAT: _concatenated, _MEASURE: _measured}
        self._turns = 0
        self._end = time.monotonic() + MAX_SECONDS

    def compile(self, source: Any, *arguments: Any, **options: Any) -> Any:
        """Every text that becomes a template comes through here, included ones too."""
        name = cast(str | None, arguments[0] if arguments else options.get("name"))
        parsed = self.parse(source, name) if isinstance(source, str) else source
        return cast(Any, super().compile(_Restricting(name).visit(parsed), *arguments, **options))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+":
            self.measured([left, right])
        elif not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
            raise SecurityError(f"`{operator}` works on numbers only")
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, (int, float)) and abs(result) > MAX_NUMBER:
            raise SecurityError("a number becomes too large")
        return result

    def getattr(self, obj: Any, attribute: str) -> Any:
        # A flag or key is meant, also where dictionaries have a method of that name.
        return self.getitem(obj, attribute) if isinstance(obj, dict) else super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Methods are of no use where nothing can be called, and show more than they should."""
        return not callable(value) and super().is_safe_attribute(obj, attr, value)

    def _shown(self, value: Any) -> Any:
        return "" if value is None else self.measured(value)

    def measured(self, value: Any) -> Any:
        """The value, if it is not too large and the time is not used up."""
        if _left(value, MAX_VALUE) < 0:
            raise SecurityError(f"a value becomes larger than {MAX_VALUE:,} characters")
        self.check_time()
        return value

    def check_time(self) -> None:
        """Refuse to go on when the time is used up."""
        if time.monotonic() > self._end:
            raise SecurityError(f"it runs for more than {MAX_SECONDS} seconds")

    def count_turn(self) -> None:
        """Count a turn of a loop."""
        self._turns += 1
        if self._turns > MAX_TURNS:
            raise SecurityError(f"its loops turn more than {MAX_TURNS:,} times")
        if self._turns % 256 == 0:
            self.check_time()


class _Restricting(NodeTransformer):
    """Refuses what templates may not use, and puts the counting and measuring in."""

    def __init__(self, name: str | None) -> None:
        self._name = name

    def generic_visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> nodes.Node:
        refused = _REFUSED.get(type(node))
        if refused is not None:
            raise TemplateSyntaxError(f"{refused} are not allowed in templates", node.lineno, self._name)
        if isinstance(node, nodes.Filter) and node.name not in _BUILT_IN | _OWN:
            known = ", ".join(sorted(_BUILT_IN | _OWN))
            raise TemplateSyntaxError(f"unknown filter `{node.name}`; known filters: {known}", node.lineno, self._name)
        return super().generic_visit(node, *args, **kwargs)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filter(nodes.List(node.nodes, lineno=node.lineno), _CONCAT)

    def visit_List(self, node: nodes.Expr) -> nodes.Node:
        self.generic_visit(node)
        return _filter(node, _MEASURE)

    visit_Dict = visit_List

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        self.generic_visit(node)
        return _filter(node, _MEASURE) if node.ctx == "load" else node

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        counted = _filter(nodes.Const("", lineno=node.lineno), _TURN)
        node.body.insert(0, nodes.Output([counted], lineno=node.lineno))
        return node


def _filter(value: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(value, name, [], [], None, None, lineno=value.lineno)


def _loaded(source: Source, name: str) -> tuple[str, str, Callable[[], bool]] | None:
    text = source(name)
    # The name stands in for a file's, so that errors name the template.
    return None if text is None else (text, name, lambda: True)


def _left(value: object, budget: int) -> int:
    """How much of a budget is left after a value; below zero as soon as it is used up."""
    if isinstance(value, str):
        return budget - len(value) - 1
    if isinstance(value, dict):
        members: Iterable[object] = (each for pair in cast(dict[Any, Any], value).items() for each in pair)
    elif isinstance(value, (list, tuple, set, frozenset)):
        members = cast(Iterable[object], value)
    else:
        return budget - 1
    for member in members:
        if budget < 0:
            break
        budget = _left(member, budget - 1)
    return budget


# With the context, because what needs only the environment is worked out once, when the template is compiled.
@pass_context
def _counted(context: Context, value: str) -> str:
    cast(Sandbox, context.environment).count_turn()
    return value


@pass_environment
def _measured(environment: Sandbox, value: Any) -> Any:
    return environment.measured(value)


@pass_environment
def _concatenated(environment: Sandbox, values: list[Any]) -> str:
    return "".join(str(value) for value in environment.measured(values))


@pass_environment
def _join(environment: Sandbox, values: Any, between: object = "") -> str:
    members = list(environment.measured(values))
    environment.measured([str(between)] * len(members))
    return str(between).join(str(member) for member in members)


@pass_environment
def _tojson(environment: Sandbox, value: Any) -> str:
    if isinstance(value, Undefined):
        raise SecurityError("`tojson` needs a value")
    return json.dumps(environment.measured(value), ensure_ascii=False, default=str)


def _round(value: Any, digits: int = 0) -> Any:
    return round(value, max(-15, min(15, digits)))
