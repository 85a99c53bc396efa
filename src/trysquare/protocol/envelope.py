"""The 2026-07-28 envelope: what every request says of itself in `_meta`, and repeats in HTTP headers."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

from trysquare.core.json import JsonObject
from trysquare.protocol.messages import HEADER_MISMATCH, INVALID_PARAMS, UNSUPPORTED_VERSION, RequestId, RpcError
from trysquare.protocol.methods import CLIENT_REQUESTS, SEVERITY
from trysquare.protocol.versions import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LOG_LEVEL_KEY,
    STATELESS_VERSIONS,
    VERSION_KEY,
)

VERSION_HEADER: Final = "mcp-protocol-version"
METHOD_HEADER: Final = "mcp-method"
NAME_HEADER: Final = "mcp-name"
PARAM_HEADER: Final = "mcp-param-"
SESSION_HEADER: Final = "mcp-session-id"
ANNOTATION: Final = "x-mcp-header"
"""The keyword of a tool's schema that has an argument repeated in a header."""

_UNNAMED: Final[JsonObject] = {"name": "", "version": ""}
_WRAPPED: Final = re.compile(r"=\?base64\?(.*)\?=")
_PLAIN: Final = re.compile(r"(?!=\?base64\?)(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DECIMAL: Final = re.compile(r"(-?[0-9]+)(?:\.0+)?")
_TYPES: Final = frozenset({"string", "integer", "boolean"})
_SUBSCHEMAS: Final = frozenset(
    {"items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties", "not"}
    | {"if", "then", "else", "contentSchema"}
)
"""Keywords whose value is a schema."""
_LISTED_SUBSCHEMAS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED_SUBSCHEMAS: Final = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})


def progress_token(meta: JsonObject | None) -> RequestId | None:
    """The token under which a request wants its progress reported; None if it wants none."""
    token = None if meta is None else meta.get("progressToken")
    return token if isinstance(token, (str, int)) and not isinstance(token, bool) else None


def require_meta(meta: JsonObject | None, *, stateless: bool) -> None:
    """Raise `RpcError` for a progress token or log level in `_meta` that is none."""
    if meta is None:
        return
    if "progressToken" in meta and progress_token(meta) is None:
        raise RpcError(INVALID_PARAMS, "`_meta.progressToken` must be a string or an integer.")
    level = meta.get(LOG_LEVEL_KEY, "debug") if stateless else "debug"
    if not isinstance(level, str) or level not in SEVERITY:
        raise RpcError(INVALID_PARAMS, f"`{LOG_LEVEL_KEY}` must be one of {', '.join(SEVERITY)}.")


def is_enveloped(meta: Any) -> bool:
    """Whether a request is of 2026-07-28: no earlier client sends this key."""
    return isinstance(meta, dict) and VERSION_KEY in meta


def envelope_version(meta: Any) -> Any:
    """The version in an envelope, unchecked. Raises `RpcError` where a required member is missing."""
    if not isinstance(meta, dict):
        raise RpcError(
            INVALID_PARAMS, f"`params._meta` must be an object with `{VERSION_KEY}` and `{CAPABILITIES_KEY}`."
        )
    if VERSION_KEY not in meta or CAPABILITIES_KEY not in meta:
        missing = [f"`{key}`" for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
        raise RpcError(INVALID_PARAMS, f"`params._meta` lacks {' and '.join(missing)}.")
    envelope = cast(JsonObject, meta)
    if not isinstance(envelope[CAPABILITIES_KEY], dict):
        raise RpcError(INVALID_PARAMS, f"`{CAPABILITIES_KEY}` must be an object.")
    given: Any = envelope.get(CLIENT_INFO_KEY, _UNNAMED)
    client = cast(JsonObject, given) if isinstance(given, dict) else {}
    if not isinstance(client.get("name"), str) or not isinstance(client.get("version"), str):
        raise RpcError(INVALID_PARAMS, f"`{CLIENT_INFO_KEY}` must be an object with `name` and `version`.")
    return envelope[VERSION_KEY]


def require_version(version: Any) -> None:
    """Raise `RpcError` unless this is a version that needs no handshake."""
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"`{VERSION_KEY}` must be a string.")
    if version not in STATELESS_VERSIONS:
        data = {"supported": list(STATELESS_VERSIONS), "requested": version}
        raise RpcError(UNSUPPORTED_VERSION, f"Unsupported protocol version `{version[:40]}`.", data)


def require_headers(headers: Mapping[str, str], version: Any, method: str, name: Any) -> None:
    """Raise `RpcError` unless the headers repeat the body: an intermediary may route by them."""
    if headers.get(VERSION_HEADER) is None or headers[VERSION_HEADER] != version:
        raise RpcError(HEADER_MISMATCH, f"The header MCP-Protocol-Version must repeat `{VERSION_KEY}`.")
    if headers.get(METHOD_HEADER) != method:
        raise RpcError(HEADER_MISMATCH, "The header Mcp-Method must repeat the `method`.")
    if name is not None and decode_header(headers.get(NAME_HEADER)) != name:
        raise RpcError(HEADER_MISMATCH, "The header Mcp-Name must repeat the `name` or `uri`.")


def request_headers(version: str, method: str, name: str | None) -> dict[str, str]:
    """The headers that repeat a request, as `require_headers` expects them."""
    headers = {VERSION_HEADER: version, METHOD_HEADER: method}
    known = CLIENT_REQUESTS.get(method)
    if name is not None and known is not None and known.named_by is not None:
        headers[NAME_HEADER] = encode_header(name)
    return headers


def encode_header(text: str) -> str:
    """A string as a header value, in base64 if it would not survive as it is."""
    if _PLAIN.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


def decode_header(value: str | None) -> str | None:
    """The string in a header value; None if its base64 is malformed."""
    wrapped = _WRAPPED.fullmatch(value) if value is not None and value.startswith("=?base64?") else None
    if wrapped is None:
        return value
    try:
        decoded = base64.b64decode(wrapped[1], validate=True)
        # Only the canonical form counts, or two texts would stand for one value.
        return decoded.decode() if base64.b64encode(decoded).decode() == wrapped[1] else None
    except ValueError:
        # Not base64, not UTF-8, or not even ASCII.
        return None


class MirroredArgument(NamedTuple):
    """An argument that is repeated in the header `Mcp-Param-TOKEN`."""

    path: tuple[str, ...]
    token: str
    type: str

    @property
    def header(self) -> str:
        return PARAM_HEADER + self.token.lower()

    def value_in(self, arguments: Any) -> Any:
        """The argument at its path; None if there is none."""
        for key in self.path:
            arguments = cast(JsonObject, arguments).get(key) if isinstance(arguments, dict) else None
        return arguments


MirroredArguments: TypeAlias = tuple[MirroredArgument, ...]


def mirrored_arguments(schema: Any) -> MirroredArguments:
    """The arguments that a tool's schema has repeated in headers; none if any of its annotations is invalid.

    An annotation is valid on a string, integer or boolean that is reached through `properties` alone, with a token of
    its own as its value. Clients drop a tool with an invalid one, so that no header of it can be relied on.
    """
    found = [_mirrored(path, part) for path, part in _schema_positions(schema) if ANNOTATION in part]
    valid = tuple(one for one in found if one is not None)
    tokens = {one.token.lower() for one in valid}
    return valid if len(valid) == len(found) == len(tokens) else ()


def _mirrored(path: tuple[str, ...] | None, part: JsonObject) -> MirroredArgument | None:
    token, kind = part[ANNOTATION], part.get("type")
    is_token = isinstance(token, str) and _TOKEN.fullmatch(token) is not None
    if not path or not is_token or not isinstance(kind, str) or kind not in _TYPES:
        return None
    return MirroredArgument(path, token, kind)


def _schema_positions(root: Any) -> Iterator[tuple[tuple[str, ...] | None, JsonObject]]:
    """Every schema inside a schema, with its path of `properties`; None as its path if it is reached otherwise."""
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), root)]
    while waiting:
        path, part = waiting.pop()
        if isinstance(part, dict):
            schema = cast(JsonObject, part)
            yield path, schema
            waiting.extend(_inner_schemas(path, schema))


def _inner_schemas(path: tuple[str, ...] | None, schema: JsonObject) -> Iterator[tuple[tuple[str, ...] | None, Any]]:
    for keyword, value in schema.items():
        if keyword in _SUBSCHEMAS:
            yield None, value
        elif isinstance(value, list) and keyword in _LISTED_SUBSCHEMAS:
            for part in cast(list[Any], value):
                yield None, part
        elif isinstance(value, dict) and (keyword == "properties" or keyword in _NAMED_SUBSCHEMAS):
            for name, part in cast(JsonObject, value).items():
                yield (None if path is None or keyword != "properties" else (*path, name)), part


def mirror_headers(wanted: MirroredArguments, arguments: Any) -> dict[str, str]:
    """The headers that repeat the arguments of a call."""
    values = {f"Mcp-Param-{one.token}": _header_text(one.value_in(arguments)) for one in wanted}
    return {name: encode_header(text) for name, text in values.items() if text is not None}


def require_mirrored(wanted: MirroredArguments, arguments: Any, headers: Mapping[str, str]) -> None:
    """Raise `RpcError` unless each header and the argument that it repeats are there together, and agree."""
    for one in wanted:
        given, value = headers.get(one.header), one.value_in(arguments)
        text = _header_text(value)
        if given is None and text is None:
            continue
        if given is None or text is None or not _agree(one.type, value, text, decode_header(given)):
            argument = ".".join(one.path)
            raise RpcError(HEADER_MISMATCH, f"The header Mcp-Param-{one.token} must repeat the argument `{argument}`.")


def _header_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return str(value) if isinstance(value, (str, int, float)) else None
    except ValueError:
        # An integer with more digits than Python writes.
        return None


def _agree(kind: str, value: Any, text: str, given: str | None) -> bool:
    if given is None:
        return False
    decimal = _DECIMAL.fullmatch(given) if kind == "integer" and not isinstance(value, (bool, str)) else None
    if decimal is None or len(decimal[1]) > 400:
        return given == text
    return int(decimal[1]) == value
