"""Rewriting a FastMCP server to Trysquare: edits of its source by the syntax tree, and what they cannot do.

Everything that is not edited stays as it was written, comments included. What a server or a context may be asked for is
not a list: it is what `Tools` and `CallContext` have.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from inspect import signature

from trysquare.core.context import CallContext
from trysquare.core.declarations import Tools
from trysquare.core.metadata import MetadataOptions
from trysquare.core.text import closest_names

_PACKAGES = ("fastmcp", "mcp.server.fastmcp", "mcp.server.mcpserver")
_SERVERS = ("FastMCP", "MCPServer")
_NAMES = {
    **dict.fromkeys(_SERVERS, "Tools"), "Context": "CallContext", "Image": "Image", "Audio": "Audio", "File": "File",
    "ToolError": "ToolError", "Depends": "Depends", "Client": "Client",
}  # fmt: skip
"""What stands for a name of theirs in ours."""
_HINTS = {
    "readOnlyHint": "read_only", "destructiveHint": "destructive", "idempotentHint": "idempotent",
    "openWorldHint": "open_world", "title": "title",
}  # fmt: skip
_SERVER_OPTIONS = {"website_url": "website"}
_CONTEXT_METHODS = {"report_progress": "progress"}
_ADVICE = {
    "elicit": "`context.ask(text, type)` returns the answer itself, and raises `QuestionDeclined` where there is none",
    "sample": "`context.sample(prompt)` returns the text",
    "lifespan_context": "annotate a parameter with the type that the lifespan yields",
    "request_context": "annotate a parameter with the type that the lifespan yields, or use `context.headers`",
    "get_state": "`context.kept(handle)` reads what `context.keep(value)` kept",
    "set_state": "`context.keep(value)` returns a handle for later calls",
    "mount": '`tools.mount(other, "prefix")`',
    "import_server": '`tools.mount(other, "prefix")`',
    "add_middleware": "a middleware is a function from a tool to a tool: `@tools.middleware`",
    "run_async": "use `tools.run()`, or `trysquare serve FILE`",
    "auth": "set tokens or OAuth in `trysquare.toml`, see docs/production/http.md",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """Something that a person has to change."""

    line: int
    problem: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Adopted:
    """A source after its edits."""

    text: str
    changes: int
    left: tuple[Left, ...]


@dataclass(kw_only=True, slots=True)
class _Edits:
    """Replacements in a text, by the places of syntax nodes."""

    lines: list[bytes]
    made: list[tuple[int, int, bytes]] = field(default_factory=list[tuple[int, int, bytes]])

    def offset(self, line: int, column: int) -> int:
        return sum(len(each) for each in self.lines[: line - 1]) + column

    def span(self, node: ast.AST) -> tuple[int, int]:
        place = _placed(node)
        return self.offset(place[0], place[1]), self.offset(place[2], place[3])

    def replace(self, node: ast.AST, text: str) -> None:
        start, end = self.span(node)
        self.made.append((start, end, text.encode()))

    def source(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return b"".join(self.lines)[start:end].decode()

    def applied(self) -> str:
        found = b"".join(self.lines)
        for start, end, text in sorted(self.made, reverse=True):
            found = found[:start] + text + found[end:]
        return found.decode()


def _placed(node: ast.AST) -> tuple[int, int, int, int]:
    assert isinstance(node, (ast.expr, ast.stmt, ast.keyword, ast.alias, ast.arg))
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def adopt(text: str) -> Adopted | None:
    """The source with its FastMCP server as one of Trysquare; None without one. Raises `SyntaxError`."""
    tree = ast.parse(text)
    adoption = _Adoption(tree, _Edits(lines=text.encode().splitlines(keepends=True)))
    adoption.run()
    if not adoption.edits.made and not adoption.left:
        return None
    left = tuple(sorted(adoption.left, key=lambda each: each.line))
    return Adopted(text=adoption.edits.applied(), changes=len(adoption.edits.made), left=left)


class _Adoption:
    def __init__(self, tree: ast.Module, edits: _Edits) -> None:
        self.tree, self.edits = tree, edits
        self.left: list[Left] = []
        self._theirs: dict[str, str] = {}
        """Names in this file -> what they are called in the package."""
        self._servers: set[str] = set()

    def run(self) -> None:
        self._imports()
        self._servers = {
            target.id
            for node in ast.walk(self.tree)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and self._makes_server(node.value)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and self._makes_server(node):
                self._server_options(node)
            elif isinstance(node, ast.Call):
                self._server_call(node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._context_of(node)
            elif (
                isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self._servers
            ):
                self._server_attribute(node)
        self._names()

    def _imports(self) -> None:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import) and any(_is_theirs(each.name) for each in node.names):
                self._leave(node, "`import fastmcp` is not rewritten: import the names from trysquare")
            elif isinstance(node, ast.ImportFrom) and _is_theirs(node.module or ""):
                self._import_from(node)

    def _import_from(self, node: ast.ImportFrom) -> None:
        ours: list[str] = []
        kept: list[str] = []
        for each in node.names:
            named = each.name if each.asname is None else f"{each.name} as {each.asname}"
            if each.name not in _NAMES:
                kept.append(named)
                self._leave(node, f"`{each.name}` of `{node.module}` has no counterpart of that name")
                continue
            self._theirs[each.asname or each.name] = each.name
            ours.append(_NAMES[each.name] if each.asname is None else f"{_NAMES[each.name]} as {each.asname}")
        if ours:
            lines = [f"from trysquare import {', '.join(sorted(set(ours)))}"]
            if kept:
                lines.append(f"from {node.module} import {', '.join(kept)}")
            self.edits.replace(node, ("\n" + " " * node.col_offset).join(lines))

    def _makes_server(self, node: ast.expr | None) -> bool:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and self._called(node.func) in _SERVERS

    def _called(self, node: ast.expr) -> str:
        return self._theirs.get(node.id, "") if isinstance(node, ast.Name) else ""

    def _server_options(self, call: ast.Call) -> None:
        known = {*signature(Tools.__init__).parameters} - {"self"}
        self._options(call, known, _SERVER_OPTIONS, "the server")

    def _server_call(self, call: ast.Call) -> None:
        """A decorator or a method of a server."""
        function = call.func
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return
        if function.value.id not in self._servers:
            return
        match function.attr:
            case "run":
                self._run(call)
            case "tool":
                self._tool(call)
            case "add_tool":
                self.edits.replace(function, f"{function.value.id}.tool")
            case name if hasattr(Tools, name):
                known = {
                    *signature(getattr(Tools, name)).parameters,
                    "name",
                    "title",
                    "description",
                    "meta",
                    "mime_type",
                }
                self._options(call, known, {}, f"`{name}`")
            case _:
                pass

    def _tool(self, call: ast.Call) -> None:
        hints = next((each for each in call.keywords if each.arg == "annotations"), None)
        known = {*MetadataOptions.__annotations__, "name", "title", "description"}
        if hints is not None:
            read = dict(_hints_in(hints.value))
            if not read:
                self._leave(hints, "`annotations` is not written out: use `read_only=`, `destructive=` and so on")
            else:
                self.edits.replace(
                    hints, ", ".join(f"{_HINTS[name]}={self.edits.source(each)}" for name, each in read.items())
                )
        schema = next((each for each in call.keywords if each.arg == "output_schema"), None)
        if schema is not None and not (isinstance(schema.value, ast.Constant) and schema.value.value is None):
            self._leave(schema, "the output schema is that of the return annotation")
        if schema is not None:
            self.edits.replace(schema.value, "False" if isinstance(schema.value, ast.Constant) else "True")
        self._options(call, known | {"annotations"}, {}, "a tool")

    def _options(self, call: ast.Call, known: set[str], renamed: Mapping[str, str], what: str) -> None:
        """Rename the options that are called otherwise, and take out those that do not exist here."""
        for each in call.keywords:
            name = each.arg
            if name is None or name in known:
                continue
            if name in renamed:
                self.edits.replace(each, f"{renamed[name]}={self.edits.source(each.value)}")
            else:
                self._leave(each, _says(f"the option `{name}` of {what} was taken out", name))
                self._take_out(call, each)

    def _take_out(self, call: ast.Call, option: ast.keyword) -> None:
        """Remove an option with the comma beside it."""
        text = b"".join(self.edits.lines)
        start, end = self.edits.span(option)
        after = end
        while after < len(text) and text[after : after + 1] in (b" ", b"\n", b"\t", b"\r"):
            after += 1
        if text[after : after + 1] == b",":
            end = after + 1
            while text[end : end + 1] == b" ":
                end += 1
        else:
            before = start - 1
            while text[before : before + 1] in (b" ", b"\n", b"\t", b"\r"):
                before -= 1
            start = before if text[before : before + 1] == b"," else start
        self.edits.made.append((start, end, b""))

    def _run(self, call: ast.Call) -> None:
        options = {each.arg: each.value for each in call.keywords}
        transport = call.args[0] if call.args else options.get("transport")
        if transport is not None and not isinstance(transport, ast.Constant):
            self._leave(call, 'the transport is not written out: use `run()` or `run(http="HOST:PORT")`')
            return
        value = transport.value if isinstance(transport, ast.Constant) else "stdio"
        given = self.edits.source(call.func)
        if value == "stdio":
            self.edits.replace(call, f"{given}()")
            return
        host, port = options.get("host"), options.get("port")
        if host is None and port is None:
            self.edits.replace(call, f"{given}(http=True)")
        elif all(each is None or isinstance(each, ast.Constant) for each in (host, port)):
            address = f"{_value(host, '127.0.0.1')}:{_value(port, 8000)}"
            self.edits.replace(call, f'{given}(http="{address}")')
        else:
            self._leave(call, 'host and port are not written out: use `run(http=f"{host}:{port}")`')

    def _server_attribute(self, node: ast.Attribute) -> None:
        if node.attr not in ("run", "add_tool") and not hasattr(Tools, node.attr):
            near = closest_names(node.attr, [name for name in dir(Tools) if not name.startswith("_")])
            hint = f"; did you mean `{near[0]}`?" if near and node.attr not in _ADVICE else ""
            self._leave(node, _says(f"`Tools` has no `{node.attr}`{hint}", node.attr))

    def _context_of(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """The uses of a parameter that is their context."""
        arguments = function.args
        names = {
            each.arg
            for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            if each.annotation is not None and self._names_context(each.annotation)
        }
        for node in ast.walk(function) if names else ():
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
                self._context_attribute(node)
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "report_progress"
            ):
                for each in node.keywords:
                    if each.arg == "progress":
                        self.edits.replace(each, f"done={self.edits.source(each.value)}")

    def _names_context(self, annotation: ast.expr) -> bool:
        return any(self._called(node) == "Context" for node in ast.walk(annotation) if isinstance(node, ast.Name))

    def _context_attribute(self, node: ast.Attribute) -> None:
        name = node.attr
        assert isinstance(node.value, ast.Name)
        if name in _CONTEXT_METHODS:
            self.edits.replace(node, f"{node.value.id}.{_CONTEXT_METHODS[name]}")
        elif name in _ADVICE or not _has(CallContext, name):
            self._leave(node, _says(f"`CallContext` has no such `{name}`", name))

    def _names(self) -> None:
        """Their names wherever they stand, apart from the imports."""
        for node in ast.walk(self.tree):
            name = node.id if isinstance(node, ast.Name) else ""
            if self._theirs.get(name) == name and _NAMES.get(name, name) != name:
                self.edits.replace(node, _NAMES[name])

    def _leave(self, node: ast.AST, problem: str) -> None:
        self.left.append(Left(line=_placed(node)[0], problem=problem))


def _is_theirs(module: str) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in _PACKAGES)


def _has(kind: type, name: str) -> bool:
    return hasattr(kind, name) or name in getattr(kind, "__dataclass_fields__", {})


def _hints_in(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The hints of a dictionary or of a call of `ToolAnnotations` that are written out."""
    if isinstance(value, ast.Dict):
        for key, part in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and str(key.value) in _HINTS:
                yield str(key.value), part
    elif isinstance(value, ast.Call):
        for each in value.keywords:
            if each.arg is not None and each.arg in _HINTS:
                yield each.arg, each.value


def _says(problem: str, name: str) -> str:
    advice = _ADVICE.get(name)
    return problem if advice is None else f"{problem}: {advice}"


def _value(node: ast.expr | None, otherwise: object) -> object:
    return node.value if isinstance(node, ast.Constant) else otherwise
