"""What a client of the differential suite sends: exchanges as data, and the frames that they become in each era."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import Any, Final, Literal, TypeAlias

from tests.differential.material import Json

Era: TypeAlias = Literal["2025-11-25", "2026-07-28"]
Transport: TypeAlias = Literal["stdio", "sessions", "stateless"]
"""stdio; streamable HTTP with sessions for clients of 2025-11-25; streamable HTTP without them."""

LEGACY: Final[Era] = "2025-11-25"
MODERN: Final[Era] = "2026-07-28"
ERAS: Final[tuple[Era, ...]] = (LEGACY, MODERN)
TRANSPORTS: Final[tuple[Transport, ...]] = ("stdio", "sessions", "stateless")
HTTP: Final[tuple[Transport, ...]] = ("sessions", "stateless")

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
CLIENT: Final[Json] = {"name": "differential", "version": "1"}
EVERYTHING: Final[Json] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}

# The parameter that a request of 2026-07-28 repeats in its `Mcp-Name` header.
NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Absent:
    """Marks a member that is left out."""

    def __repr__(self) -> str:
        return "absent"


ABSENT: Final = Absent()
AUTOMATIC: Final = Absent()
ACCEPTED: Final[Mapping[str, Any]] = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada", "color": "green"}},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "small"},
    "roots/list": {"roots": [{"uri": "file:///project", "name": "project"}]},
}


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """One message of the client, and how the client goes on until everything that belongs to it has come back."""

    name: str
    method: Any = ABSENT
    params: Any = ABSENT
    id: Any = AUTOMATIC
    """ABSENT makes it a notification."""
    members: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Members of the frame to set otherwise, or to leave out."""
    raw: bytes | None = None
    """The whole frame, where no JSON value makes it. `%ID%` stands for a fresh id, `%META%` for `_meta`."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Members of `_meta` to set otherwise, or to leave out."""
    enveloped: bool = True
    """Whether a request of 2026-07-28 carries its `_meta`."""
    eras: tuple[Era, ...] = ERAS
    transports: tuple[Transport, ...] = TRANSPORTS

    verb: str = "POST"
    path: str = "/mcp"
    headers: tuple[tuple[str, str | None], ...] = ()
    """HTTP headers to send as well; None leaves a usual one out."""
    doubled: tuple[tuple[str, str], ...] = ()
    """HTTP headers to send beside the usual ones of the same name."""

    answers: Mapping[str, Any] = field(default_factory=lambda: ACCEPTED)
    """The client's answers by method: results, or an `Exception` with the code of an error."""
    until: tuple[str, ...] = ()
    """Notifications that must arrive before the exchange is over."""
    cancels: bool = False
    """Whether the client cancels after the first notification."""
    stays_open: bool = False
    """Whether the response is a stream that is read by later exchanges."""
    follows: bool = True
    """Whether the client fetches further pages, and calls again with its answers."""

    def fits(self, era: Era, transport: Transport) -> bool:
        return era in self.eras and transport in self.transports

    def given_id(self, request_id: int) -> Any:
        """The id that a raw frame has in its bytes; ABSENT for other frames."""
        return request_id if self.raw is not None and b"%ID%" in self.raw else ABSENT

    def frame(self, era: Era, request_id: int, capabilities: Json, more: Json | None = None) -> bytes:
        """The bytes to send. `more` are further parameters, when the client calls again."""
        if self.raw is not None:
            meta = json.dumps(envelope(capabilities) if era == MODERN else {}).encode()
            return self.raw.replace(b"%ID%", b"%d" % request_id).replace(b"%META%", meta)
        members: Json = {
            "jsonrpc": "2.0",
            "id": request_id if self.id is AUTOMATIC else self.id,
            "method": self.method,
            "params": self._params(era, capabilities, more or {}),
            **self.members,
        }
        return json.dumps({name: value for name, value in members.items() if value is not ABSENT}).encode()

    def _params(self, era: Era, capabilities: Json, more: Json) -> Any:
        if not (isinstance(self.params, Mapping) or self.params is ABSENT):
            return self.params
        params: Json = {**({} if self.params is ABSENT else self.params), **more}
        is_request = self.id is not ABSENT and "_meta" not in params
        usual = envelope(capabilities) if era == MODERN and self.enveloped and is_request else {}
        meta = {name: value for name, value in {**usual, **self.meta}.items() if value is not ABSENT}
        if meta:
            params["_meta"] = meta
        return params or self.params


def envelope(capabilities: Json) -> Json:
    """What every request of 2026-07-28 carries."""
    return {VERSION_KEY: MODERN, CLIENT_KEY: CLIENT, CAPABILITIES_KEY: capabilities}


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """Exchanges on one connection, in order. A conversation over HTTP with sessions has a session of its own."""

    name: str
    exchanges: tuple[Exchange, ...]
    greets: bool = True
    """Whether the handshake of 2025-11-25 comes first."""
    capabilities: Json = field(default_factory=lambda: EVERYTHING)
    eras: tuple[Era, ...] = ERAS
    transports: tuple[Transport, ...] = TRANSPORTS

    def played(self, era: Era, transport: Transport) -> tuple[Exchange, ...]:
        """The exchanges of this conversation that exist in an era on a transport."""
        if era not in self.eras or transport not in self.transports:
            return ()
        return tuple(exchange for exchange in self.exchanges if exchange.fits(era, transport))


INITIALIZE: Final[Json] = {"protocolVersion": LEGACY, "capabilities": EVERYTHING, "clientInfo": CLIENT}


def opening(capabilities: Json) -> Exchange:
    """The request that opens a connection of 2025-11-25."""
    return Exchange(name="initialize", method="initialize", params={**INITIALIZE, "capabilities": capabilities})


INITIALIZED: Final = Exchange(name="initialized", method="notifications/initialized", id=ABSENT)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came back for one exchange, as it was on the wire."""

    messages: tuple[Json, ...] = ()
    news: tuple[Json, ...] = ()
    """Notifications that belong to no request. They may arrive at any place, and over HTTP on another stream."""
    statuses: tuple[int, ...] = ()
    """The HTTP status of every response."""
    opens_session: bool = False
    sent_ids: tuple[Any, ...] = ()
    """The ids of the requests that the client sent for it."""
    problem: str | None = None
    """What kept the exchange from ending: no response in time, a closed connection, bytes that are not JSON."""


NEWS: Final = frozenset(
    f"notifications/{kind}"
    for kind in (
        "tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated",
        "subscriptions/acknowledged",
    )
)  # fmt: skip


def sent_id(frame: bytes, given: Any = ABSENT) -> Any:
    """The id in a frame, whatever it is; what was given where the frame cannot be read."""
    try:
        message: Any = json.loads(frame)
    except (ValueError, RecursionError):
        return given
    return message.get("id", ABSENT) if isinstance(message, dict) else ABSENT


def is_request(frame: bytes) -> bool:
    """Whether a frame is a request that gets a response with its own id."""
    found = sent_id(frame)
    if not isinstance(found, (str, int)) or isinstance(found, bool):
        return False
    message: Json = json.loads(frame)
    is_called = message.get("jsonrpc") == "2.0" and isinstance(message.get("method"), str)
    return is_called and isinstance(message.get("params", {}), (dict, NoneType))


def following_params(message: Json, answers: Mapping[str, Any]) -> Json | None:
    """What the client adds to its params to go on after a result: the cursor of the next page, or its answers."""
    result = message.get("result")
    if not isinstance(result, dict):
        return None
    if isinstance(cursor := result.get("nextCursor"), str):
        return {"cursor": cursor}
    if result.get("resultType") != "input_required":
        return None
    requests: Json = result.get("inputRequests") or {}
    responses = {key: answers[request["method"]] for key, request in requests.items()}
    return {"inputResponses": responses, "requestState": result.get("requestState")}


def response_to(request: Json, answers: Mapping[str, Any]) -> Json:
    """The client's response to a request of the server."""
    answer = answers.get(request["method"], ValueError(-32601))
    if isinstance(answer, Exception):
        return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": answer.args[0], "message": "refused"}}
    return {"jsonrpc": "2.0", "id": request["id"], "result": answer}


def split_news(messages: Iterable[Json]) -> tuple[tuple[Json, ...], tuple[Json, ...]]:
    """The messages that belong to a request, and those that belong to none."""
    found = tuple(messages)
    news = tuple(message for message in found if message.get("method") in NEWS)
    return tuple(message for message in found if message.get("method") not in NEWS), news
