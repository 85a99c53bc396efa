"""Elysia: the tools of a gateway as tools of an Elysia tree (PyPI `elysia-ai`).

This file stands alone: it needs the standard library and nothing else of Trysquare, because what Elysia pins and what
we need do not fit into one environment. Import it, or copy it under another name, where Elysia is; the gateway runs in
an environment of its own and is spoken to over stdio or HTTP. Elysia is imported when its tools are made.

    tree = Tree()                                           # Elysia's, with a tool for every server of mcp.json
    tree.add_tool(MCPTool(server_name="api_ai_mcp"))        # or one server, to a tree of your own
    with Gateway("mcp.json") as gateway:                    # or all of them, for as long as you say
        for tool in gateway.tools():
            tree.add_tool(tool)
"""

from __future__ import annotations

import asyncio
import atexit
import collections
import contextlib
import copy
import functools
import http.client
import importlib
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

Json: TypeAlias = dict[str, Any]

_VERSION = "2025-11-25"
_START = 30.0
"""Seconds that a gateway has to start and to say what it offers."""
_FRESH = 5.0
"""Seconds for which a list of tools is believed: Elysia asks before every decision, once for each tool."""
_CALLS = 64
"""Calls at a time; more wait."""
_SPOKEN = 2_000
"""Characters of a plain text that the user is shown as it is."""
_AS_TEXT = "Write this object as JSON text if it has a key called `value`."
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict"}
_DESCRIPTIONS = {
    "action": "`list` to show tools, `execute` to run a specific tool, `read` to read on in a large result",
    "tool_name": "Name of the tool to execute (required with `execute`); with `list`, the only one to show",
    "tool_inputs": "Inputs for the tool (with `execute`); for `read`: handle, and path, grep, offset, length",
    "server": "Name of the server",
    "query": "With `list`: find tools that fit these words",
}


class GatewayError(Exception):
    """The gateway cannot be reached, or did not respond."""


class NotSent(GatewayError):
    """The gateway cannot be reached and has seen nothing of the call, so that it may be made again."""


class Repairable(Exception):
    """What a model can do better in its next call."""


class _Link:
    """A connection. Common to stdio and HTTP: responses are matched to their requests by id."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[object, Future[Json]] = {}
        self.ended: str | None = None
        self.headers: dict[str, str] = {}
        """Sent with every HTTP request."""

    def send(self, message: Json) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """End the connection."""

    def ask(self, method: str, params: Json, timeout: float, stop: contextlib.ExitStack | None = None) -> Json:
        """The result of a request. Closing `stop` in another thread cancels it."""
        number, answer = next(self._numbers), Future[Json]()
        self._waiting[number] = answer
        if stop is not None:
            stop.pop_all()  # An earlier attempt that was not sent.
            stop.callback(self._give_up, number)
        try:
            self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            message = answer.result(timeout)
        except TimeoutError:
            self._give_up(number)
            raise GatewayError(
                f"Timeout: no response within {timeout:g} seconds. The call may have taken effect."
            ) from None
        finally:
            self._waiting.pop(number, None)
        if "error" in message:
            raise Repairable(str(message["error"].get("message", message["error"])))
        return cast(Json, message.get("result") or {})

    def receive(self, message: Json) -> None:
        if "method" not in message:
            self._settle(message.get("id"), message)
        elif "id" in message:
            refused: Json = {"error": {"code": -32601, "message": "This client does not support this method."}}
            answer: Json = {"result": {}} if message["method"] == "ping" else refused
            self.send({"jsonrpc": "2.0", "id": message["id"], **answer})

    def _settle(self, number: object, answer: Json | GatewayError) -> None:
        # Whoever takes the entry out settles it, so that a late or second answer finds nothing to settle.
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            return
        if isinstance(answer, GatewayError):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)

    def _give_up(self, number: int) -> None:
        self._settle(number, GatewayError("The call was cancelled."))
        params = {"requestId": number, "reason": "The caller no longer waits."}
        with contextlib.suppress(GatewayError):  # A cancellation need not reach a server that has ended.
            self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def _end(self, reason: str) -> None:
        self.ended = reason
        for number in list(self._waiting):
            self._settle(number, GatewayError(f"{reason} The call may have taken effect."))


class _Process(_Link):
    """A gateway that is our child: a message is a line of its standard input or output."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None, folder: str | None) -> None:
        super().__init__()
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                list(command), stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, start_new_session=True,
                env=None if env is None else {**os.environ, **env},
            )  # fmt: skip
        except OSError as error:
            raise NotSent(f"`{command[0]}` cannot be started: {error}. Name it with its path in `command`.") from None
        self._name, self._writing = os.path.basename(command[0]), threading.Lock()
        self._last_words: collections.deque[str] = collections.deque(maxlen=5)
        self._errors = threading.Thread(target=self._pass_errors_on, daemon=True)
        self._errors.start()
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def send(self, message: Json) -> None:
        assert self._process.stdin is not None
        if self.ended is not None:
            raise NotSent(self.ended)
        try:
            with self._writing:
                self._process.stdin.write(json.dumps(message).encode() + b"\n")
                self._process.stdin.flush()
        except (OSError, ValueError) as error:  # A line that was not taken whole was not acted upon.
            raise NotSent(self.ended or f"`{self._name}` accepts no more calls: {error}.") from None

    def close(self) -> None:
        """End the process: by the end of its input, and harder if it does not go."""
        with contextlib.suppress(OSError):  # It may be gone already.
            cast(Any, self._process.stdin).close()
        for harder in (self._process.terminate, self._process.kill, lambda: None):
            try:
                self._process.wait(5)
                break
            except subprocess.TimeoutExpired:
                harder()
        self._reading.join(2)

    def _read(self) -> None:
        with cast(Any, self._process.stdout) as lines:
            for line in lines:
                self._take(line)
        code = self._process.wait()
        self._errors.join(1)
        words = f": {' '.join(self._last_words)}".rstrip(": ")
        self._end(f"`{self._name}` ended with exit code {code}{words}.")

    def _take(self, line: bytes) -> None:
        try:
            message = _object(json.loads(line))
        except (ValueError, RecursionError):
            return  # Only messages count; whatever else a program prints here is not for us.
        with contextlib.suppress(NotSent):  # An answer to one that has just gone.
            self.receive(message)

    def _pass_errors_on(self) -> None:
        with cast(Any, self._process.stderr) as lines:
            for line in lines:
                text = line.decode(errors="replace")
                self._last_words.append(text.strip())
                with contextlib.suppress(OSError, ValueError):  # Nobody may be there to read it.
                    sys.stderr.write(text)


class _Address(_Link):
    """A gateway at an address: a message is the body of a request, and answers come with the response."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        super().__init__()
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise GatewayError(f"`{url}` is not a URL such as http://127.0.0.1:8000/mcp.")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = functools.partial(kind, parts.hostname, parts.port, timeout=timeout)
        self._url, self._path = url, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token is not None:
            self.headers["Authorization"] = f"Bearer {token}"

    def send(self, message: Json) -> None:
        with contextlib.closing(self._connection()) as connection:
            try:
                connection.connect()
            except OSError as error:
                raise NotSent(f"Cannot connect to {self._url}: {error}.") from None
            try:
                connection.request("POST", self._path, json.dumps(message).encode(), self.headers)
                self._take(connection.getresponse())
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise GatewayError(f"{self._url} did not respond: {error!r}. The call may have taken effect.") from None
        reason = f"{self._url} responded without a result. The call may have taken effect."
        self._settle(message.get("id"), GatewayError(reason))

    def _take(self, response: http.client.HTTPResponse) -> None:
        if session := response.headers.get("Mcp-Session-Id"):
            self.headers["Mcp-Session-Id"] = session
        if response.status == 404 and "Mcp-Session-Id" in self.headers:
            self.ended = "The session has ended."
            raise NotSent(self.ended)
        if response.status in (401, 403):
            raise GatewayError(f"{self._url} returned status {response.status}: check `token`.")
        is_stream = response.headers.get_content_type() == "text/event-stream"
        for text in _events(response) if is_stream else [response.read().decode()]:
            message = _object(json.loads(text)) if text.strip() else {}
            if response.status >= 400 and message.get("id") is None:
                raise GatewayError(f"{self._url} returned status {response.status}: {text[:300]}")
            if message:
                self.receive(message)


def _events(response: http.client.HTTPResponse) -> Iterator[str]:
    data: list[str] = []
    for line in response:
        name, _, value = line.decode().rstrip("\r\n").partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
        elif not name and not value and data:
            yield "\n".join(data)
            data.clear()


class Gateway(contextlib.AbstractContextManager["Gateway"]):
    """A gateway to the tools of MCP servers: started here from a configuration or a command, or met at an address."""

    def __init__(
        self,
        config: str | os.PathLike[str] | None = None,
        *,
        command: Sequence[str] | None = None,
        url: str | None = None,
        token: str | None = None,
        env: Mapping[str, str] | None = None,
        folder: str | None = None,
        timeout: float = 120.0,
        result_size: int = 8000,
    ) -> None:
        if sum(one is not None for one in (config, command, url)) != 1:
            raise ValueError(
                "Give one of `config`, `command` and `url`: what to serve, how to start it, or where it is."
            )
        started = command or ["trysquare", "serve", "--gateway", os.fspath(config or "")]
        self.result_size, self._timeout = result_size, timeout
        self._reach: Callable[[], _Link] = (
            (lambda: _Process(started, env, folder)) if url is None else (lambda: _Address(url, token, timeout))
        )
        self._pool = ThreadPoolExecutor(_CALLS, thread_name_prefix="gateway")
        self._linking, self._listing = threading.Lock(), threading.Lock()
        self._link: _Link | None = None
        self._listed: tuple[float, dict[str, Json] | GatewayError] | None = None

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, and the gateway if it was started here."""
        with self._linking:
            if self._link is not None:
                self._link.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def tools(self) -> list[Any]:
        """An Elysia tool class for each tool of the gateway, ready for `tree.add_tool`."""
        return [_tool_class(self, definition) for definition in self.definitions().values()]

    def definitions(self) -> dict[str, Json]:
        """What the gateway lists, by name."""
        with self._listing:
            if self._listed is None or time.monotonic() - self._listed[0] > _FRESH:
                self._listed = (time.monotonic(), self._list())
        if isinstance(self._listed[1], GatewayError):
            raise self._listed[1]
        return self._listed[1]

    async def reason_against(self, name: str) -> str:
        """Why a tool cannot be used just now; empty if it can."""
        try:
            listed = await asyncio.wrap_future(self._pool.submit(self.definitions))
        except GatewayError as error:
            return str(error)
        return "" if name in listed else f"The gateway no longer offers `{name}`."

    async def call(self, name: str, arguments: Json) -> Json:
        """The result of a tool, as MCP gives it."""
        stop = contextlib.ExitStack()
        params = {"name": name, "arguments": arguments, "_meta": {"trysquare/result_bytes": self.result_size}}
        try:
            return await asyncio.wrap_future(self._pool.submit(self._ask, "tools/call", params, self._timeout, stop))
        except asyncio.CancelledError:
            self._pool.submit(stop.close)
            raise

    def _list(self) -> dict[str, Json] | GatewayError:
        found: dict[str, Json] = {}
        params: Json = {}
        try:
            while True:
                page = self._ask("tools/list", params, _START)
                found.update({tool["name"]: tool for tool in page.get("tools", ())})
                if not page.get("nextCursor"):
                    return found
                params = {"cursor": page["nextCursor"]}
        except GatewayError as error:
            return error

    def _ask(self, method: str, params: Json, timeout: float, stop: contextlib.ExitStack | None = None) -> Json:
        try:
            return self._linked().ask(method, params, timeout, stop)
        except NotSent:
            return self._linked(anew=True).ask(method, params, timeout, stop)

    def _linked(self, *, anew: bool = False) -> _Link:
        with self._linking:
            if self._link is not None and (self._link.ended is not None or anew):
                self._link.close()
                self._link = None
            if self._link is None:
                self._link = self._greeted(self._reach())
            return self._link

    def _greeted(self, link: _Link) -> _Link:
        client = {"name": "trysquare-elysia", "version": "1"}
        try:
            reply = link.ask(
                "initialize", {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": client}, _START
            )
            link.headers["MCP-Protocol-Version"] = str(reply.get("protocolVersion", _VERSION))
            link.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        except (GatewayError, Repairable) as error:
            link.close()
            raise GatewayError(f"The gateway cannot be used: {error}") from None
        return link


@functools.cache
def shared_gateway(config: str = "mcp.json") -> Gateway:
    """The gateway over the servers of a file: one for the whole process, until its end."""
    gateway = Gateway(config)
    atexit.register(gateway.close)
    return gateway


class MCPTool:
    """One MCP server as an instance of Elysia's `Tool`: `tree.add_tool(MCPTool(server_name="api_ai_mcp"))`.

    The server is found under its name in `mcp.json` or under the name of its tool. `gateway` is one that you opened.
    """

    def __new__(cls, server_name: str, *, gateway: Gateway | None = None, **kwargs: Any) -> Any:
        chosen = gateway or shared_gateway()
        definitions = chosen.definitions()
        wanted = "mcp_" + re.sub(r"\W", "_", server_name.removeprefix("mcp_"))
        if wanted not in definitions:
            known = ", ".join(f"`{name}`" for name in definitions) or "nothing"
            raise GatewayError(f"The gateway has no server `{server_name}`. It offers {known}.")
        return _tool_class(chosen, definitions[wanted])(**kwargs)


def __getattr__(name: str) -> Any:
    """`Tree`, made when it is first used, because Elysia takes seconds to be imported."""
    if name == "Tree":
        return _tree_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@functools.cache
def _tree_class() -> Any:
    base: Any = importlib.import_module("elysia").Tree

    class Tree(base):
        """Elysia's tree, to which the tools of a gateway are added whenever it is initialised."""

        def __init__(self, *args: Any, gateway: Gateway | None = None, **kwargs: Any) -> None:
            self._gateway = gateway or shared_gateway()
            base.__init__(self, *args, **kwargs)

        def set_branch_initialisation(self, initialisation: str | None) -> None:
            base.set_branch_initialisation(self, initialisation)
            for tool in self._gateway.tools():
                self.add_tool(tool)

    return Tree


def _tool_class(gateway: Gateway, definition: Json) -> Any:
    """An Elysia tool. Made by hand, as Elysia reads what it shows of a class from literals in its source."""
    objects: Any = importlib.import_module("elysia.objects")
    base, name, description = objects.Tool, definition["name"], definition.get("description") or ""
    inputs = _inputs_of(_object(definition.get("inputSchema")))

    def __init__(self: Any, **kwargs: Any) -> None:
        own = copy.deepcopy(inputs)  # Elysia writes into what it is given.
        base.__init__(self, name=name, description=description, status=f"Asking {name}...", inputs=own)
        self.is_tool_available = _availability(gateway, name)

    async def __call__(self: Any, tree_data: Any, inputs: Json, *lms: Any, **kwargs: Any) -> AsyncIterator[Any]:
        yield objects.Status(_plain(f"{name}: {inputs.get('tool_name') or inputs.get('action') or 'running'}"))
        try:
            arguments = await _arguments(gateway, definition, inputs)
            result = await gateway.call(name, arguments)
        except Repairable as error:
            yield objects.Error(feedback=_plain(str(error)))
        except GatewayError as error:
            yield objects.Error(error_message=_plain(str(error)))
        else:
            yield _shown(objects, name, arguments, result, 4 * gateway.result_size)
            if text := _plain_text(result):
                # Elysia keeps it as words of the assistant's: it says whose they are.
                said = f"`{arguments.get('tool_name')}` of {name} answered: {text}"
                yield objects.Text("text", [{"text": _plain(said)}], metadata={"tool": name})

    def get_default_inputs(self: Any) -> Json:
        return copy.deepcopy(base.get_default_inputs(self))

    members = {"__init__": __init__, "__call__": __call__, "get_default_inputs": get_default_inputs}
    shown = {"_tool_name": name, "_tool_description": description, "_tool_inputs": inputs, "_tool_end": False}
    return type(base)(name, (base,), {**members, **shown, "__doc__": description, "__module__": __name__})


def _availability(gateway: Gateway, name: str) -> Any:
    """Whether a tool can be used, as a function whose docstring says why not: Elysia shows that to the model."""

    async def is_tool_available(*_: Any, **kwargs: Any) -> bool:
        is_tool_available.__doc__ = await gateway.reason_against(name)
        return not is_tool_available.__doc__

    return is_tool_available


def _inputs_of(schema: Json) -> Json:
    """The inputs of a tool in Elysia's words."""
    required, properties = _texts(schema.get("required")), _object(schema.get("properties"))
    # The gateway's own list is shorter than what Elysia's decisions are made from.
    words = _DESCRIPTIONS if {"action", "tool_name", "tool_inputs"} <= set(properties) else {}
    return {
        name: _input(words.get(name) or about.get("description") or "", about, name in required)
        for name, about in properties.items()
    }


def _input(description: str, about: Json, is_required: bool) -> Json:
    kind, parts = about.get("type"), [description]
    if "enum" in about:
        parts.append(f"One of {json.dumps(about['enum'])}")
    if kind == "object":
        parts.append(_AS_TEXT)
    shown = {"description": ". ".join(part.rstrip(".") for part in parts if part), "required": is_required}
    default = {"default": about["default"]} if "default" in about else {}
    return {**shown, "type": _TYPES.get(kind, "Any") if isinstance(kind, str) else "Any", **default}


async def _arguments(gateway: Gateway, definition: Json, given: Json) -> Json:
    """What to send: without the inputs that Elysia filled up with None, and with objects as they were."""
    schema = _object(definition.get("inputSchema"))
    required, properties = _texts(schema.get("required")), _object(schema.get("properties"))
    sent = {name: part for name, part in given.items() if part is not None or name in required}
    for name, part in list(sent.items()):
        about = _object(properties.get(name))
        if name == "tool_inputs" and sent.get("action") == "execute" and "tool_name" in sent:
            about = await _schema_of(gateway, definition["name"], sent)
        if about.get("type") == "object":
            sent[name] = restored(part, about, name)
    return sent


async def _schema_of(gateway: Gateway, name: str, sent: Json) -> Json:
    """The schema of what a tool behind the gateway takes; empty if it is unknown."""
    asked = {key: sent[key] for key in ("server", "tool_name") if key in sent}
    found = await gateway.call(name, {"action": "list", "detail": "schemas", **asked})
    tools = _object(found.get("structuredContent")).get("result")
    only = _object(tools[0]) if isinstance(tools, list) and len(cast(list[Any], tools)) == 1 else {}
    about = _object(only.get("inputs"))
    return {**about, "type": "object"} if about else about


def restored(given: Any, schema: Json, name: str) -> Json:
    """An object as it was before Elysia put what it has under `value`, if anything, in its place.

    JSON text comes through Elysia unharmed. Raises if the input is ambiguous: half an object is never sent.
    """
    properties, required = _object(schema.get("properties")), _texts(schema.get("required"))
    whole = _beside_value(given, properties, required) if "value" in properties else _object_in(given)
    if whole is not None:
        return whole
    raise Repairable(
        f"`{name}` must be an object; {json.dumps(given)[:200]} arrived. A key called `value` is lost on the way:"
        f' send `{name}` as JSON text, such as "{{\\"value\\": …}}", with all that belongs into it.'
    )


def _beside_value(given: Any, properties: Json, required: set[str]) -> Json | None:
    """An object of which the key `value` may be lost: as it was, or None where there is more than one reading."""
    is_text, whole, kinds = isinstance(given, str), _object_in(given), _object(properties["value"]).get("type")
    if whole is not None and kinds is not None and ("string" if is_text else "object") not in kinds:
        return whole
    if is_text and whole is not None and "value" in whole and required <= set(whole) <= set(properties):
        return whole
    is_lost = given != {} or "value" in required
    return {"value": given} if set(properties) == {"value"} and is_lost else None


def _object_in(given: Any) -> Json | None:
    """The object that was given, as it is or as JSON text."""
    try:
        parsed = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return None
    return cast(Json, parsed) if isinstance(parsed, dict) else None


def _shown(objects: Any, name: str, arguments: Json, result: Json, limit: int) -> Any:
    """A tool's result as Elysia takes it."""
    structured, meta = result.get("structuredContent"), _object(result.get("_meta"))
    origin, about = _object(meta.get("trysquare/origin")), _object(meta.get("trysquare/result"))
    if result.get("isError"):
        text = _plain(_text_of(result) or json.dumps(structured))
        return objects.Error(feedback=text) if _is_repairable(about, origin) else objects.Error(error_message=text)
    value = _value_of(structured, about) if not origin or "handle" in origin else structured
    rows = _rows(value if value is not None else _text_of(result))
    rows = _bounded([*rows, *_other_blocks(result)], limit)
    action = arguments.get("tool_name") or arguments.get("action") or "answer"
    text = f"`{action}` of {name}: {len(rows)} objects. " + " ".join(
        part if isinstance(part, str) else json.dumps(part)
        for part in (*origin.get("notes", ()), about.get("instruction"), about.get("next")) if part
    )  # fmt: skip
    message = text.strip().replace("{", "{{").replace("}", "}}")  # Elysia formats it.
    return objects.Result(objects=rows, metadata=origin, name=str(action), llm_message=message)


def _value_of(structured: Any, about: Json) -> Any:
    """What our own tool returned: without the guidance that stands beside it."""
    own = {key: part for key, part in _object(structured).items() if key not in about}
    return own.get("result") if "result" in own else own or structured


def _is_repairable(about: Json, origin: Json) -> bool:
    """Whether a model can correct the call. One that may have taken effect must not be repeated unasked."""
    if about.get("outcome") == "sent_unknown":
        return False
    code = str(about.get("code", ""))
    return bool(origin) or not code or "next" in about or code.startswith("VALIDATION") or "NOT_FOUND" in code


def _rows(value: Any) -> list[Json]:
    """Objects, which is all that Elysia's environment takes. JSON in a text is read."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError, RecursionError):
            if value.lstrip()[:1] in ("{", "["):
                return _rows(json.loads(value))
        return [{"text": value}] if value else []
    if isinstance(value, list):
        return [row if isinstance(row, dict) else {"result": row} for row in cast(list[Any], value)]
    return [cast(Json, value)] if isinstance(value, dict) else [{"result": value}]


def _text_of(result: Json) -> str:
    return "\n".join(block.get("text", "") for block in result.get("content") or () if block.get("type") == "text")


def _plain_text(result: Json) -> str:
    """The text of a result that is nothing but a short text, to be read by the user; empty for any other."""
    blocks, text = result.get("content") or (), _text_of(result)
    is_text = not result.get("isError") and "structuredContent" not in result
    return text if is_text and len(blocks) == 1 and len(text) <= _SPOKEN and text.lstrip()[:1] not in ("{", "[") else ""


def _other_blocks(result: Json) -> list[Json]:
    """Describe content that is not text: base64 is useless in a prompt."""
    return [_described(block) for block in result.get("content") or () if block.get("type") != "text"]


def _described(block: Json) -> Json:
    inner = _object(block.get("resource")) or block
    kept = {key: part for key, part in inner.items() if key not in ("data", "blob")}
    coded = inner.get("data") or inner.get("blob")
    return {**kept, "type": block.get("type"), **({"bytes": len(coded) * 3 // 4} if coded else {})}


def _bounded(rows: list[Json], limit: int) -> list[Json]:
    """Rows that stay in every later prompt: of more than a gateway should send, the beginning."""
    text = json.dumps(rows, ensure_ascii=False)
    if len(text) <= limit:
        return rows
    return [{"head": text[:limit], "characters": len(text), "cut": "Truncated. Ask for less at a time."}]


def _object(value: Any) -> Json:
    """An object, empty if it is none: what others send may be anything."""
    return cast(Json, value) if isinstance(value, dict) else {}


def _texts(value: Any) -> set[str]:
    return {str(one) for one in cast(list[Any], value)} if isinstance(value, list) else set()


def _plain(text: str) -> str:
    """A text that Elysia can print: rich reads `[/…]` as the end of a style and fails."""
    return text.replace("[/", "[ /")
