"""Rewriting a FastMCP server to Trysquare: edits of its source by the syntax tree, and what they cannot do.

Everything that is not edited stays as it was written, comments included. What a server or a context may be asked for is
not a list: it is what `Tools` and `CallContext` have.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from types import MappingProxyType
from typing import TypeAlias

from trysquare.core.context import CallContext
from trysquare.core.declarations import Tools
from trysquare.core.metadata import MetadataOptions
from trysquare.core.text import closest_names

_PACKAGES = ("fastmcp", "mcp.server.fastmcp", "mcp.server.mcpserver")
_TYPES = ("mcp.types", "mcp_types")
"""What a server returns may be of these; other programs have them too."""
_SERVERS = ("FastMCP", "MCPServer")
_MESSAGES = {"Message": None, "UserMessage": None, "AssistantMessage": "assistant"}
"""Their classes of messages, and the role that each stands for."""
_NAMES = {
    **dict.fromkeys(_SERVERS, "Tools"), **dict.fromkeys(_MESSAGES, "PromptMessage"), "Context": "CallContext",
    "Image": "Image", "Audio": "Audio", "File": "File", "ToolError": "ToolError", "ResourceError": "ToolError",
    "PromptError": "ToolError", "Depends": "Depends", "Client": "Client", "TextContent": "Text",
}  # fmt: skip
"""What stands for a name of theirs in ours."""
_HINTS = {
    "readOnlyHint": "read_only", "destructiveHint": "destructive", "idempotentHint": "idempotent",
    "openWorldHint": "open_world", "title": "title",
}  # fmt: skip
_SERVER_OPTIONS = {"website_url": "website"}
_RUN_OPTIONS = ("transport", "host", "port", "show_banner", "log_level")
_METHODS = {"add_tool": "tool", "streamable_http_app": "http_app"}
_OPTIONS = {"mount": {"namespace": "prefix"}, "tool": {"structured_output": "output_schema"}}
_CONTEXT_METHODS = {"report_progress": "progress", "list_roots": "roots"}
_DECORATORS = ("tool", "prompt", "resource", "custom_route")
_ADVICE = {
    "elicit": "`context.ask(text, type)` returns the answer itself, and raises `QuestionDeclined` where there is none",
    "sample": "`context.sample(prompt)` returns the text",
    "lifespan_context": "annotate a parameter with the type that the lifespan yields",
    "request_context": "annotate a parameter with the type that the lifespan yields, or use `context.headers`",
    "get_state": "`context.kept(handle)` reads what `context.keep(value)` kept",
    "set_state": "`context.keep(value)` returns a handle for later calls",
    "import_server": "`tools.mount(other, prefix)`",
    "as_proxy": "put the other server behind the gateway, see docs/gateway",
    "from_openapi": "use the function `from_openapi` of trysquare",
    "from_fastapi": "use the function `from_fastapi` of trysquare",
    "add_middleware": "a middleware is a function from a tool to a tool: `@tools.middleware`",
    "middleware": "a middleware is a function from a tool to a tool: `@tools.middleware`",
    "Middleware": "a middleware is a function from a tool to a tool: `@tools.middleware`",
    "enabled": "use `tools.disable(name)`",
    "exclude_args": "a value that no model gives is a dependency: `Annotated[T, Depends(function)]`",
    "settings": "use the options of `run`, or `trysquare.toml`",
    "dependencies": "they belong in `pyproject.toml`",
    "get_context": "what a call may use is a parameter `context: CallContext`",
    "CurrentContext": "a parameter annotated with `CallContext` needs no default",
    "get_http_headers": "use `context.headers`",
    "get_http_request": "use `context.headers`",
    "get_access_token": "use `context.principal`",
    "get_logger": "use `logging.getLogger`",
    "Tool": "use `transform_tool` of trysquare to make a tool of another",
    "ArgTransform": "use `Argument` and `transform_tool` of trysquare",
    "task": "long work is a task: `@tools.tool(task=True)`",
    "auth": "set tokens or OAuth in `trysquare.toml`, see docs/production/http.md",
    "path": "the endpoint is `/mcp`; `http_app(path=…)` takes another",
}  # fmt: skip
_ASYNC_RUN = re.compile(r"run_\w*async")
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Servers: TypeAlias = Mapping[str, frozenset[str]]
"""The last part of a module's name -> the names of its servers."""


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
    """Replacements in a text, by the places of syntax nodes. What lies inside of a larger replacement goes with it."""

    text: bytes
    made: list[tuple[int, int, bytes]] = field(default_factory=list[tuple[int, int, bytes]])
    starts: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        line, column, end_line, end_column = _placed(node)
        return self.starts[line - 1] + column, self.starts[end_line - 1] + end_column

    def replace(self, node: ast.AST, text: str) -> None:
        start, end = self.span(node)
        self.made.append((start, end, text.encode()))

    def rename(self, option: ast.keyword, name: str) -> None:
        start, _ = self.span(option)
        self.made.append((start, start + len((option.arg or "").encode()), name.encode()))

    def take_out(self, call: ast.Call, options: Iterable[ast.keyword]) -> None:
        """Remove options of a call with the commas beside them."""
        gone = {id(each) for each in options}
        parts = sorted((self.span(each), id(each) in gone) for each in (*call.args, *call.keywords))
        kept = [place for place, is_gone in parts if not is_gone]
        for number, (place, is_gone) in enumerate(parts):
            if not is_gone:
                continue
            following = next((each for each, _ in parts[number + 1 :]), None)
            if any(other > place for other in kept) and following is not None:
                # Up to what stands next, so that the comma goes too.
                self.made.append((place[0], following[0], b""))
            elif kept:
                self.made.append((kept[-1][1], parts[-1][0][1], b""))
            else:
                self.made.append((parts[0][0][0], parts[-1][0][1], b""))

    def source(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end].decode()

    def covers(self, node: ast.AST) -> bool:
        """Whether a node goes with a replacement."""
        start, end = self.span(node)
        return any(first <= start and end <= last for first, last, _ in self.made)

    def effective(self) -> list[tuple[int, int, bytes]]:
        """The replacements without those inside of others, in their order."""
        found: list[tuple[int, int, bytes]] = []
        for each in sorted(self.made, key=lambda one: (one[0], -one[1])):
            if not found or each[0] >= found[-1][1]:
                found.append(each)
        return found

    def applied(self) -> str:
        found = self.text
        for start, end, text in reversed(self.effective()):
            found = found[:start] + text + found[end:]
        return found.decode()


def _placed(node: ast.AST) -> tuple[int, int, int, int]:
    assert isinstance(node, (ast.expr, ast.stmt, ast.keyword, ast.alias, ast.arg))
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def adopt(text: str, others: Servers = MappingProxyType({})) -> Adopted | None:
    """The source with its FastMCP server as one of Trysquare; None without one. Raises `SyntaxError`.

    `others` are the servers of other modules, as `servers_in` finds them, which this one may import.
    """
    adoption = _Adoption(ast.parse(text), _Edits(text=text.encode()), others)
    adoption.run()
    if not adoption.edits.made and not adoption.left:
        return None
    left = tuple(sorted(adoption.left, key=lambda each: each.line))
    return Adopted(text=adoption.edits.applied(), changes=len(adoption.edits.effective()), left=left)


def servers_in(text: str, others: Servers = MappingProxyType({})) -> frozenset[str]:
    """The names of servers that a module has for others to import. Raises `SyntaxError`."""
    adoption = _Adoption(ast.parse(text), _Edits(text=text.encode()), others)
    adoption.read_imports()
    return adoption.exported()


class _Adoption:
    def __init__(self, tree: ast.Module, edits: _Edits, others: Servers) -> None:
        self.tree, self.edits = tree, edits
        self.left: list[Left] = []
        self._others = others
        self._theirs: dict[str, str] = {}
        """Names in this file -> what they are called in the package."""
        self._is_part = False
        """Whether this file belongs to a server."""
        self._modules: set[str] = set()
        """Names in this file of the package and its modules."""
        self._servers: frozenset[str] = frozenset()
        """Expressions that are a server."""
        self._addresses: dict[str, ast.expr] = {}
        """Host and port that the server itself was given."""

    def run(self) -> None:
        self.read_imports()
        self._servers = self.find_servers()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and (self._makes_server(node) or self._starts_subclass(node)):
                self._server_options(node)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and not self._makes_server(node):
                self._call(node)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._context_of(node)
            elif isinstance(node, ast.Attribute):
                self._attribute(node)
        used = self._names()
        self._imports(used)

    def read_imports(self) -> None:
        modules = [node.module for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom) and not node.level]
        modules += [each.name for node in ast.walk(self.tree) if isinstance(node, ast.Import) for each in node.names]
        self._is_part = bool(self._others) or any(_is_theirs(each or "") for each in modules)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found = (each.asname or each.name for each in node.names if self._has_of(each.name))
                self._modules.update(found)
            elif isinstance(node, ast.ImportFrom) and self._has_of(node.module or "") and not node.level:
                for each in node.names:
                    if each.name in _NAMES or each.name[:1].isupper() or each.name in _ADVICE:
                        self._theirs[each.asname or each.name] = each.name
                    else:
                        self._modules.add(each.asname or each.name)

    def exported(self) -> frozenset[str]:
        """The names of this module that are a server."""
        found = {name for name in self._imported() if "." not in name}
        for node in _statements(self.tree.body):
            if isinstance(node, ast.Assign) and self._gives_server(node.value):
                found.update(target.id for target in node.targets if isinstance(target, ast.Name))
            elif (
                isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and self._gives_server(node.value)
            ):
                found.add(node.target.id)
        return frozenset(found)

    def find_servers(self) -> frozenset[str]:
        found = {*self._imported(), *(self._decorating() if self._is_part else ())}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and self._gives_server(node.value):
                found.update(ast.unparse(target) for target in node.targets)
            elif isinstance(node, ast.AnnAssign) and (
                self._gives_server(node.value) or self._is_server_type(node.annotation)
            ):
                found.add(ast.unparse(node.target))
            elif isinstance(node, ast.arg) and self._is_server_type(node.annotation):
                found.add(node.arg)
            elif isinstance(node, ast.ClassDef) and any(self._called(base) in _SERVERS for base in node.bases):
                found.add("self")
        return frozenset(found)

    def _imported(self) -> Iterator[str]:
        """Servers of other modules, as they are called here: `mcp`, or `app.mcp` of an imported module `app`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    for name in self._others.get(each.name.rpartition(".")[2], ()):
                        yield f"{each.asname or each.name}.{name}"
            elif isinstance(node, ast.ImportFrom):
                known = self._others.get((node.module or "").rpartition(".")[2], frozenset())
                for each in node.names:
                    if each.name in known:
                        yield each.asname or each.name
                    else:
                        yield from (f"{each.asname or each.name}.{name}" for name in self._others.get(each.name, ()))

    def _decorating(self) -> Iterator[str]:
        """What decorates functions as a server does."""
        for node in ast.walk(self.tree):
            for each in node.decorator_list if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ():
                function = each.func if isinstance(each, ast.Call) else each
                if isinstance(function, ast.Attribute) and function.attr in _DECORATORS:
                    yield ast.unparse(function.value)

    def _gives_server(self, value: ast.expr | None) -> bool:
        """Whether an expression makes a server, or calls a function of this file that is annotated with one."""
        if isinstance(value, ast.Await):
            value = value.value
        return self._makes_server(value) or (
            isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in self._makers
        )

    @cached_property
    def _makers(self) -> frozenset[str]:
        """The functions that are annotated with a server as what they return."""
        return frozenset(
            node.name
            for node in ast.walk(self.tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and self._is_server_type(node.returns)
        )

    def _is_server_type(self, annotation: ast.expr | None) -> bool:
        return annotation is not None and any(self._names_type(annotation, each) for each in _SERVERS)

    def _names_type(self, annotation: ast.expr, wanted: str) -> bool:
        """Whether an annotation, perhaps written as a text, names a class of theirs."""
        for node in ast.walk(annotation):
            if isinstance(node, (ast.Name, ast.Attribute)) and self._called(node) == wanted:
                return True
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                names = {name for name, real in self._theirs.items() if real == wanted}
                if names & set(re.findall(r"\w+", node.value)):
                    return True
        return False

    def _makes_server(self, node: ast.expr | None) -> bool:
        return isinstance(node, ast.Call) and self._called(node.func) in _SERVERS

    def _starts_subclass(self, call: ast.Call) -> bool:
        return "self" in self._servers and ast.unparse(call.func) == "super().__init__"

    def _called(self, node: ast.expr) -> str:
        """What a name or an attribute of a module is called in the package; empty for anything else."""
        if isinstance(node, ast.Subscript):
            return self._called(node.value)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in self._modules:
            return node.attr
        return self._theirs.get(node.id, "") if isinstance(node, ast.Name) else ""

    def _server_options(self, call: ast.Call) -> None:
        known = {*signature(Tools.__init__).parameters} - {"self", "middleware"}
        for each in call.keywords:
            if each.arg in ("host", "port"):
                self._addresses[each.arg] = each.value
        gone = [each for each in call.keywords if each.arg in ("host", "port")]
        self._options(call, known, _SERVER_OPTIONS, "the server", unsaid=gone)

    def _call(self, call: ast.Call) -> None:
        """A decorator or a method of a server, or a class of theirs."""
        function = call.func
        if (name := self._called(function)) in _MESSAGES:
            self._message(call, name)
        elif name == "TextContent":
            kind = [each for each in call.keywords if each.arg == "type"]
            self.edits.take_out(call, kind)
        if not isinstance(function, ast.Attribute) or ast.unparse(function.value) not in self._servers:
            return
        method = _METHODS.get(function.attr, function.attr)
        if method == "run":
            self._run(call)
        elif method == "tool":
            self._tool(call)
        elif method == "mount":
            self._mount(call)
        elif hasattr(Tools, method):
            known = {*signature(getattr(Tools, method)).parameters, "name", "title", "description", "meta", "mime_type"}
            known |= {"tags", "annotations"} if method == "resource" else {"tags"} if method == "prompt" else set()
            self._options(call, known, {}, f"`{function.attr}`")
            if method == "prompt" and call.args and isinstance(call.args[0], ast.Constant):
                self.edits.replace(call.args[0], f"name={self.edits.source(call.args[0])}")

    def _message(self, call: ast.Call, name: str) -> None:
        if call.args:
            self.edits.replace(call.args[0], f"content={self.edits.source(call.args[0])}")
        last = [*call.args, *call.keywords][-1:]
        role = _MESSAGES[name]
        if role is not None and last:
            _, end = self.edits.span(last[0])
            self.edits.made.append((end, end, f', role="{role}"'.encode()))

    def _mount(self, call: ast.Call) -> None:
        self._options(call, {"other", "prefix"}, _OPTIONS["mount"], "`mount`")
        if len(call.args) == 2 and isinstance(call.args[0], ast.Constant):
            # Before version 2.9 the prefix came first.
            first, second = call.args
            self.edits.replace(first, self.edits.source(second))
            self.edits.replace(second, self.edits.source(first))

    def _tool(self, call: ast.Call) -> None:
        hints = next((each for each in call.keywords if each.arg == "annotations"), None)
        known = {*MetadataOptions.__annotations__, "name", "title", "description", "annotations"}
        if hints is not None:
            self._hints(call, hints)
        schema = next((each for each in call.keywords if each.arg == "output_schema"), None)
        if schema is not None and not (isinstance(schema.value, ast.Constant) and schema.value.value is None):
            self._leave(schema, "the output schema is that of the return annotation")
        if schema is not None:
            self.edits.replace(schema.value, "False" if isinstance(schema.value, ast.Constant) else "True")
        self._options(call, known, _OPTIONS["tool"], "a tool")

    def _hints(self, call: ast.Call, hints: ast.keyword) -> None:
        read = dict(_hints_in(hints.value))
        if not read:
            self._leave(hints, "`annotations` is not written out: use `read_only=`, `destructive=` and so on")
            self.edits.take_out(call, [hints])
            return
        for name in sorted(read.keys() - _HINTS.keys()):
            self._leave(hints, f"the annotation `{name}` was taken out; `meta=` takes values of your own")
        if any(each.arg == "title" for each in call.keywords):
            read.pop("title", None)
        ours = [f"{_HINTS[name]}={self.edits.source(each)}" for name, each in read.items() if name in _HINTS]
        if ours:
            self.edits.replace(hints, ", ".join(ours))
        else:
            self.edits.take_out(call, [hints])

    def _options(
        self, call: ast.Call, known: set[str], renamed: Mapping[str, str], what: str,
        unsaid: Iterable[ast.keyword] = (),
    ) -> None:  # fmt: skip
        """Rename the options that are called otherwise, and take out those that do not exist here."""
        gone = list(unsaid)
        for each in call.keywords:
            name = each.arg
            if name is None or name in known or each in gone:
                continue
            if name in renamed:
                self.edits.rename(each, renamed[name])
            else:
                self._leave(each, _says(f"the option `{name}` of {what} was taken out", name))
                gone.append(each)
        if gone:
            self.edits.take_out(call, gone)

    def _run(self, call: ast.Call) -> None:
        options: dict[str | None, ast.expr] = {**self._addresses, **{each.arg: each.value for each in call.keywords}}
        for name in options:
            if name is None:
                self._leave(call, "the options after `**` were taken out: use `run(http=…)`")
            elif name not in _RUN_OPTIONS:
                self._leave(call, _says(f"the option `{name}` of `run` was taken out", name))
        transport = call.args[0] if call.args else options.get("transport")
        given, address = self.edits.source(call.func), self._address(options.get("host"), options.get("port"))
        if transport is None or (isinstance(transport, ast.Constant) and transport.value == "stdio"):
            self.edits.replace(call, f"{given}()")
        elif isinstance(transport, ast.Constant):
            self.edits.replace(call, f"{given}(http={address})")
        else:
            chosen = f'{self.edits.source(transport)} != "stdio"'
            self.edits.replace(
                call, f"{given}(http={chosen if address == 'True' else f'{address} if {chosen} else False'})"
            )

    def _address(self, host: ast.expr | None, port: ast.expr | None) -> str:
        """An expression of host and port as one text."""
        if host is None and port is None:
            return "True"
        if all(each is None or isinstance(each, ast.Constant) for each in (host, port)):
            return f'"{_value(host, "127.0.0.1")}:{_value(port, 8000)}"'
        first = f'"{_value(host, "127.0.0.1")}:"' if host is None or isinstance(host, ast.Constant) else ""
        last = f'":{_value(port, 8000)}"' if port is None or isinstance(port, ast.Constant) else ""
        if first and port is not None:
            return f"{first} + str({self.edits.source(port)})"
        assert host is not None
        return (
            f"{self.edits.source(host)} + {last}"
            if last
            else (f'{self.edits.source(host)} + ":" + str({self.edits.source(port)})' if port is not None else "")
        )

    def _attribute(self, node: ast.Attribute) -> None:
        owner = ast.unparse(node.value)
        if owner in self._servers or self._called(node.value) in _SERVERS:
            if owner == "self" and node.attr not in _METHODS and not hasattr(Tools, node.attr):
                # What a subclass adds itself.
                return
            if node.attr in _METHODS:
                _, end = self.edits.span(node)
                self.edits.made.append((end - len(node.attr), end, _METHODS[node.attr].encode()))
            elif _ASYNC_RUN.fullmatch(node.attr):
                self._leave(node, f"`Tools` has no `{node.attr}`: use `tools.run()`, or `trysquare serve FILE`")
            elif not hasattr(Tools, node.attr):
                near = closest_names(node.attr, [name for name in dir(Tools) if not name.startswith("_")])
                hint = f"; did you mean `{near[0]}`?" if near and node.attr not in _ADVICE else ""
                self._leave(node, _says(f"`Tools` has no `{node.attr}`{hint}", node.attr))

    def _context_of(self, function: Function) -> None:
        """The uses of a parameter that is their context."""
        arguments = function.args
        names = {
            each.arg
            for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            if each.annotation is not None and self._names_type(each.annotation, "Context")
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
                        self.edits.rename(each, "done")

    def _context_attribute(self, node: ast.Attribute) -> None:
        name = node.attr
        if name in _CONTEXT_METHODS:
            _, end = self.edits.span(node)
            self.edits.made.append((end - len(name), end, _CONTEXT_METHODS[name].encode()))
        elif name in _ADVICE or not _has(CallContext, name):
            self._leave(node, _says(f"`CallContext` has no such `{name}`", name))

    def _names(self) -> set[str]:
        """Rewrite their names wherever they stand, apart from the imports; returns ours that are used by a module."""
        used: set[str] = set()
        for node in ast.walk(self.tree):
            for annotation in _annotations(node):
                self._texts_of(annotation)
            if isinstance(node, ast.Subscript) and self._called(node.value) == "Context":
                # Theirs takes types that ours has no use for.
                self.edits.replace(node, "CallContext")
                used.add("CallContext")
            elif isinstance(node, ast.Attribute) and (ours := _NAMES.get(self._called(node))) is not None:
                self.edits.replace(node, ours)
                used.add(ours)
            elif isinstance(node, ast.Name) and self._ours(node.id) != node.id:
                self.edits.replace(node, self._ours(node.id))
        return used

    def _texts_of(self, annotation: ast.expr) -> None:
        """Their names in annotations that are written as texts."""
        for node in ast.walk(annotation):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                source = self.edits.source(node)
                made = re.sub(r"\w+", lambda found: self._ours(found.group()), source)
                if made != source:
                    self.edits.replace(node, made)

    def _ours(self, name: str) -> str:
        return _NAMES.get(name, name) if self._theirs.get(name) == name else name

    def _imports(self, used: set[str]) -> None:
        """Rewrite the imports; what nothing uses any more goes."""
        remaining = {name for node in ast.walk(self.tree) for name in _exported_names(node)}
        gone: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.Name, ast.Attribute)):
                (gone if self.edits.covers(node) else remaining).add(ast.unparse(node))
        for name in self._local_types():
            if name not in gone:
                # Other programs import these too: only what was rewritten goes.
                remaining.add(name)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import) and any(self._has_of(each.name) for each in node.names):
                self._import(node, used, remaining)
            elif isinstance(node, ast.ImportFrom) and self._has_of(node.module or "") and not node.level:
                self._import_from(node, used, remaining)

    def _local_types(self) -> Iterator[str]:
        """What this file calls the protocol's types."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (each.asname or each.name for each in node.names if each.name in _TYPES)
            elif isinstance(node, ast.ImportFrom) and node.module in _TYPES:
                yield from (each.asname or each.name for each in node.names)

    def _import(self, node: ast.Import, used: set[str], remaining: set[str]) -> None:
        kept = [each for each in node.names if not self._has_of(each.name) or (each.asname or each.name) in remaining]
        for each in kept:
            if _is_theirs(each.name):
                self._leave(node, f"`import {each.name}` is still used: import the names from trysquare")
        lines = [f"import {', '.join(map(ast.unparse, kept))}"] if kept else []
        if used:
            lines.append(f"from trysquare import {', '.join(sorted(used))}")
        if len(kept) < len(node.names) or used:
            self._replace_import(node, lines)

    def _import_from(self, node: ast.ImportFrom, used: set[str], remaining: set[str]) -> None:
        ours: set[str] = set()
        kept: list[str] = []
        for each in node.names:
            named, local = ast.unparse(each), each.asname or each.name
            if each.name in _NAMES and local not in self._modules:
                ours.add(_NAMES[each.name] if each.asname is None else f"{_NAMES[each.name]} as {each.asname}")
            elif local in remaining or each.name == "*":
                kept.append(named)
                if _is_theirs(node.module or ""):
                    problem = f"`{each.name}` of `{node.module}` has no counterpart of that name"
                    self._leave(node, _says(problem, each.name))
        if len(kept) == len(node.names):
            return
        if any(name in self._modules for each in node.names if (name := each.asname or each.name)):
            ours |= used
        lines = [f"from trysquare import {', '.join(sorted(ours))}"] if ours else []
        if kept:
            lines.append(f"from {node.module} import {', '.join(kept)}")
        self._replace_import(node, lines)

    def _replace_import(self, node: ast.Import | ast.ImportFrom, lines: list[str]) -> None:
        if lines:
            self.edits.replace(node, ("\n" + " " * node.col_offset).join(lines))
        elif node.col_offset:
            # It may be all that a block has.
            self.edits.replace(node, "pass")
        else:
            start, end = self.edits.span(node)
            end += len(self.edits.text[end:]) - len(self.edits.text[end:].removeprefix(b"\r").removeprefix(b"\n"))
            self.edits.made.append((start, end, b""))

    def _has_of(self, module: str) -> bool:
        """Whether a module is one of theirs, or has the types that their servers return."""
        return _is_theirs(module) or (self._is_part and module in _TYPES)

    def _leave(self, node: ast.AST, problem: str) -> None:
        self.left.append(Left(line=_placed(node)[0], problem=problem))


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those in its `if` and `try` too."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
            yield from _statements(inner)


def _exported_names(node: ast.AST) -> Iterator[str]:
    """What `__all__` names."""
    if isinstance(node, ast.Assign) and any(ast.unparse(target) == "__all__" for target in node.targets):
        yield from (str(each.value) for each in ast.walk(node.value) if isinstance(each, ast.Constant))


def _annotations(node: ast.AST) -> Iterator[ast.expr]:
    found: ast.expr | None = None
    if isinstance(node, (ast.arg, ast.AnnAssign)):
        found = node.annotation
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        found = node.returns
    if found is not None:
        yield found


def _is_theirs(module: str) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in _PACKAGES)


def _has(kind: type, name: str) -> bool:
    return hasattr(kind, name) or name in getattr(kind, "__dataclass_fields__", {})


def _hints_in(value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The hints of a dictionary or of a call of `ToolAnnotations` that are written out."""
    if isinstance(value, ast.Dict):
        for key, part in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), part
    elif isinstance(value, ast.Call):
        for each in value.keywords:
            if each.arg is not None:
                yield _camel(each.arg), each.value


def _camel(name: str) -> str:
    """A field of `ToolAnnotations` as the protocol spells it: version 2 of the SDK has `read_only_hint`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _says(problem: str, name: str) -> str:
    advice = _ADVICE.get(name)
    return problem if advice is None else f"{problem}: {advice}"


def _value(node: ast.expr | None, otherwise: object) -> object:
    return node.value if isinstance(node, ast.Constant) else otherwise
