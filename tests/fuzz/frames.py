"""Lines that a client should never send: bytes that are no text, text that is no JSON, JSON that is no request."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.fuzz.values import SCALARS, TEXTS, random_value
from trysquare.core.json import JsonObject

METHODS = (
    "tools/call",
    "tools/list",
    "prompts/get",
    "prompts/list",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "completion/complete",
    "server/discover",
    "logging/setLevel",
    "resources/subscribe",
    "subscriptions/listen",
    "ping",
    "tasks/get",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/initialized",
    "notifications/roots/list_changed",
    "rpc.discover",
    "",
    "m" * 100_000,
    "tools/call\x00",
    "\ud800",
)
TOOL_NAMES = ("echo", "add", "search", "note", "grow", "mixed", "anything", "crash", "strange", "ask", "linger", "no")
MODERN = "2026-07-28"

_PARAMETERS = (
    "name",
    "arguments",
    "uri",
    "cursor",
    "ref",
    "argument",
    "level",
    "notifications",
    "requestId",
    "progressToken",
    "_meta",
    "inputResponses",
    "requestState",
    "taskId",
)


def modern_meta(**capabilities: JsonObject) -> JsonObject:
    """What every request of the 2026-07-28 era carries."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }


def random_frame(random: Random) -> bytes:
    """One bad line, without its end."""
    makers = (_noise, _broken_json, _wrong_shape, _bad_request, _bad_request, _bad_call, _bad_call, _bad_call)
    return random.choice(makers)(random).replace(b"\n", b" ")


def random_request(random: Random) -> JsonObject:
    """A request of the right outer form whose inside is wrong."""
    return random.choice((_request, _call))(random)


def _noise(random: Random) -> bytes:
    kind = random.randrange(4)
    if kind == 0:
        return random.randbytes(random.randrange(200))
    if kind == 1:
        return b"\xff\xfe" + "{}".encode("utf-16")
    if kind == 2:
        return b"Content-Length: 20\r\n\r"
    return bytes(random.choices(b'{}[]",:\\u0truefalsnl 1e-', k=random.randrange(60)))


def _broken_json(random: Random) -> bytes:
    whole = _encoded(_request(random))
    kind = random.randrange(6)
    if kind == 0:
        return whole[: random.randrange(len(whole))]
    if kind == 1:
        return whole + b"}"
    if kind == 2:
        place = random.randrange(len(whole))
        return whole[:place] + random.randbytes(3) + whole[place:]
    if kind == 3:
        return b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","method":"tools/list","params":{},"params":[]}'
    if kind == 4:
        return b'{"jsonrpc":"2.0","id":NaN,"method":"tools/call","params":{"name":"add","arguments":{"left":Infinity}}}'
    return b'{"jsonrpc":"2.0","id":"\xc3\x28","method":"\xed\xa0\x80"}'


def _wrong_shape(random: Random) -> bytes:
    kind = random.randrange(5)
    if kind == 0:
        return _encoded([_request(random) for _ in range(random.randrange(4))])
    if kind == 1:
        return _encoded(random.choice(SCALARS))
    if kind == 2:
        return _encoded({"jsonrpc": "2.0", "id": random.choice(SCALARS), "result": random_value(random)})
    if kind == 3:
        return _encoded({"jsonrpc": "2.0", "id": random.choice(SCALARS), "error": random_value(random)})
    return _encoded(random_value(random))


def _bad_request(random: Random) -> bytes:
    request = _request(random)
    for key in ("jsonrpc", "id", "method", "params"):
        chance = random.randrange(12)
        if chance == 0:
            request.pop(key, None)
        elif chance == 1:
            request[key] = random_value(random)
    return _encoded(request)


def _bad_call(random: Random) -> bytes:
    return _encoded(_call(random))


def _request(random: Random) -> JsonObject:
    params = {key: random_value(random, 2) for key in random.sample(_PARAMETERS, random.randrange(4))}
    return _enveloped(random, random.choice(METHODS), params)


def _call(random: Random) -> JsonObject:
    arguments: Any = {
        random.choice(("text", "left", "tree", "action", "value", "kind", "query", *TEXTS)): random_value(random)
        for _ in range(random.randrange(4))
    }
    if random.randrange(6) == 0:
        arguments = random_value(random)
    name = random.choice(TOOL_NAMES) if random.randrange(8) else random_value(random)
    return _enveloped(random, "tools/call", {"name": name, "arguments": arguments})


def _enveloped(random: Random, method: str, params: JsonObject) -> JsonObject:
    if random.randrange(2) and "_meta" not in params:
        params["_meta"] = {**modern_meta(), **_odd_meta(random)}
    return {"jsonrpc": "2.0", "id": _identifier(random), "method": method, "params": params}


def _odd_meta(random: Random) -> JsonObject:
    odd = {
        "progressToken": random.choice(SCALARS),
        "io.modelcontextprotocol/logLevel": random.choice(("debug", "loud", None, 3)),
        "io.modelcontextprotocol/protocolVersion": random.choice((MODERN, "2025-11-25", "2099-01-01", 7, "")),
        "io.modelcontextprotocol/clientCapabilities": random_value(random, 1),
        "io.modelcontextprotocol/clientInfo": random_value(random, 1),
    }
    return {key: odd[key] for key in random.sample(tuple(odd), random.randrange(3))}


def _identifier(random: Random) -> Any:
    usual = [random.randrange(10**6), f"id-{random.randrange(10**6)}"]
    return random.choice((*usual, *usual, *usual, None, -1, 1.5, 10**30, "", "i" * 1000, [1], {}))


def _encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True).encode("ascii")
