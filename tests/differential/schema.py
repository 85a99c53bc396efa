"""The schema oracle: every message of our server fits the SDK's models of the protocol version, with nothing left over.

The SDK's models ignore members that a version does not define. A message is therefore read into its model and written
again: a member that gets lost on the way is one that a strict client of that version may refuse.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import mcp_types as types
from mcp_types import methods
from pydantic import TypeAdapter, ValidationError

from tests.differential.material import Json
from tests.differential.model import Era, Exchange, Outcome

STUB = {"jsonrpc": "2.0", "id": 0}
MEMBERS = {"result": {"jsonrpc", "id", "result"}, "error": {"jsonrpc", "id", "error"}}


def violations(exchange: Exchange, outcome: Outcome, era: Era) -> Iterator[str]:
    """What is wrong with the messages of one outcome, in one line each."""
    for message in (*outcome.messages, *outcome.news):
        if "jsonrpc" in message:
            yield from _message(message, _method(exchange), era)


def _method(exchange: Exchange) -> str | None:
    """The method that a response to an exchange answers."""
    if exchange.raw is None:
        return exchange.method if isinstance(exchange.method, str) else None
    return "tools/call" if b'"tools/call"' in exchange.raw else None


def _message(message: Json, method: str | None, era: Era) -> Iterator[str]:
    try:
        types.jsonrpc_message_adapter.validate_python(message, by_name=False)
        if "method" in message:
            yield from _lost(_own_part(message), _own_message(message, era))
        elif "error" in message:
            yield from _error(message)
        else:
            yield from _result(message, method, era)
    except ValidationError as error:
        yield f"does not fit the schema: {_first(error)} in {_shown(message)}"
    except KeyError:
        yield f"is not defined in {era}: {_shown(message)}"


def _own_part(message: Json) -> Json:
    return {name: value for name, value in message.items() if name not in STUB}


def _own_message(message: Json, era: Era) -> Json:
    """A notification or request of the server, as the model of its version writes it."""
    known = methods.SERVER_REQUESTS if "id" in message else methods.SERVER_NOTIFICATIONS
    model = known[(message["method"], era)].model_validate({**STUB, **_own_part(message)}, by_name=False)
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def _result(message: Json, method: str | None, era: Era) -> Iterator[str]:
    if set(message) != MEMBERS["result"]:
        yield f"has other members than a response: {sorted(message)}"
    if method is None:
        yield f"is a result for something that was not a request: {_shown(message)}"
        return
    result = message["result"]
    yield from _lost(result, methods.serialize_server_result(method, era, result))


DATA: dict[int, TypeAdapter[Any]] = {
    types.UNSUPPORTED_PROTOCOL_VERSION: TypeAdapter(types.UnsupportedProtocolVersionErrorData),
    types.MISSING_REQUIRED_CLIENT_CAPABILITY: TypeAdapter(types.MissingRequiredClientCapabilityErrorData),
}
"""The data of errors that the protocol defines."""


def _error(message: Json) -> Iterator[str]:
    if set(message) != MEMBERS["error"] or not set(message["error"]) <= {"code", "message", "data"}:
        yield f"has other members than an error: {_shown(message)}"
    if (adapter := DATA.get(message["error"]["code"])) is not None:
        # A client that proposed no version gets none back.
        data = {"requested": "", **(message["error"].get("data") or {})}
        read = adapter.dump_python(adapter.validate_python(data), by_alias=True, mode="json", exclude_none=True)
        yield from _lost({name: data[name] for name in read}, read)


def _lost(sent: Any, read: Any, path: str = "") -> Iterator[str]:
    """Members of what was sent that the model did not keep."""
    if isinstance(sent, dict) and isinstance(read, dict):
        for name, value in sent.items():
            if name not in read:
                yield f"has a member that the version does not define: `{path}{name}`"
            else:
                yield from _lost(value, read[name], f"{path}{name}.")
    elif isinstance(sent, list) and isinstance(read, list):
        for number, (one, other) in enumerate(zip(sent, read, strict=True)):
            yield from _lost(one, other, f"{path}{number}.")


def _first(error: ValidationError) -> str:
    detail = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"


def _shown(message: Json) -> str:
    shown = json.dumps(message)
    return shown if len(shown) <= 300 else f"{shown[:300]}…"
