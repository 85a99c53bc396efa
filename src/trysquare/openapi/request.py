"""Requests: checked arguments as path, query, headers, cookies and body, as the operation wants them."""

from __future__ import annotations

import base64
import binascii
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote, quote_plus

from trysquare.core.errors import InvalidArguments
from trysquare.core.json import JsonObject, as_object, one_line_json
from trysquare.openapi.operations import Body, Operation, Parameter

_RESERVED = ":/?#[]@!$&'()*+,;="
_DELIMITERS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_UNESCAPED = {"spaceDelimited": " ", "pipeDelimited": "|"}
_HEADER = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A request below the address of its server."""

    method: str
    path: str
    query: tuple[str, ...] = ()
    """Encoded `name=value` parts."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cookies: tuple[str, ...] = ()
    body: bytes | None = field(default=None, repr=False)

    def url(self, base: str) -> str:
        return base.rstrip("/") + self.path + ("?" + "&".join(self.query) if self.query else "")


def build_request(operation: Operation, arguments: JsonObject) -> Request:
    """The request of a call. Raises `InvalidArguments` for a value that its place cannot hold."""
    path, query, cookies = operation.path, list[str](), list[str]()
    headers: dict[str, str] = {"Accept": "application/json, */*;q=0.5"}
    for each in operation.parameters:
        value = arguments.get(each.argument)
        if each.location == "path":
            path = path.replace("{" + each.name + "}", _path_text(each, value))
        elif value is None:
            continue
        elif each.location == "query":
            query.extend(_query_parts(each, value))
        elif each.location == "header":
            headers[each.name] = _header_text(each, value)
        else:
            cookies.extend(_cookie_parts(each, value))
    body = None if operation.body is None else _encoded(operation.body, arguments, headers)
    return Request(
        method=operation.method.upper(),
        path=path,
        query=tuple(query),
        headers=headers,
        cookies=tuple(cookies),
        body=body,
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    if isinstance(value, (dict, list)):
        return one_line_json(value)
    # 3.0 is how a model writes the integer 3 now and then.
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _joined(value: Any, comma: str, explode: bool, encode: bool = False) -> str:
    """A value as one text: items joined, and of an object its names and values."""

    def written(part: Any) -> str:
        return quote(_text(part), safe="") if encode else _text(part)

    if isinstance(value, list):
        return comma.join(written(each) for each in cast(list[Any], value))
    if isinstance(value, dict):
        pairs = cast(JsonObject, value).items()
        return comma.join(f"{written(name)}{'=' if explode else comma}{written(part)}" for name, part in pairs)
    return written(value)


def _path_text(parameter: Parameter, value: Any) -> str:
    name = parameter.name
    if parameter.is_json:
        return quote(one_line_json(value), safe="")
    if parameter.style == "label":
        return "." + _joined(value, "." if parameter.explode else ",", parameter.explode, encode=True)
    if parameter.style == "matrix":
        return _matrix(name, value, parameter.explode)
    text = _joined(value, ",", parameter.explode, encode=True)
    if text in ("", ".", ".."):
        # The request would go to another path.
        raise InvalidArguments(
            f"`{parameter.argument}` must not be {f'`{text}`' if text else 'empty'}: it is a part of the path.",
            instruction="Send the call again with the identifier that is meant.",
        )
    return text


def _matrix(name: str, value: Any, explode: bool) -> str:
    if explode and isinstance(value, list):
        return "".join(f";{name}={quote(_text(each), safe='')}" for each in cast(list[Any], value))
    if explode and isinstance(value, dict):
        pairs = cast(JsonObject, value).items()
        return "".join(f";{quote(key, safe='')}={quote(_text(part), safe='')}" for key, part in pairs)
    return f";{name}={_joined(value, ',', explode=False, encode=True)}"


def _check_items(parameter: Parameter, value: Any) -> None:
    """Refuse items that contain what separates them, where a style has no escape for it."""
    delimiter = "," if parameter.location == "header" else _UNESCAPED.get(parameter.style)
    if delimiter is None or not isinstance(value, (dict, list)):
        return
    if isinstance(value, list):
        pieces = cast(list[Any], value)
    else:
        named = cast(JsonObject, value)
        pieces = [*named, *named.values()]
    for each in pieces:
        if delimiter in _text(each):
            raise InvalidArguments(
                f"`{parameter.argument}` must not contain {delimiter!r}, which separates its items: {_text(each)!r}.",
                instruction="Send the call again without it.",
            )


def _query_parts(parameter: Parameter, value: Any) -> Iterator[str]:
    name, safe = quote(parameter.name, safe="[]"), _RESERVED if parameter.allows_reserved else ""

    def encoded(part: Any) -> str:
        return quote(_text(part), safe=safe)

    if not parameter.explode:
        _check_items(parameter, value)
    if parameter.is_json or not isinstance(value, (dict, list)):
        yield f"{name}={quote(one_line_json(value), safe='') if parameter.is_json else encoded(value)}"
    elif isinstance(value, list):
        items = cast(list[Any], value)
        if parameter.explode or parameter.style == "deepObject":
            yield from (f"{name}={encoded(each)}" for each in items)
        else:
            yield f"{name}={_DELIMITERS.get(parameter.style, ',').join(encoded(each) for each in items)}"
    elif parameter.style == "deepObject":
        yield from _deep(name, cast(JsonObject, value), safe)
    elif parameter.explode:
        yield from (f"{quote(key, safe='')}={encoded(part)}" for key, part in cast(JsonObject, value).items())
    else:
        parts = [text for key, part in cast(JsonObject, value).items() for text in (quote(key, safe=""), encoded(part))]
        yield f"{name}={_DELIMITERS.get(parameter.style, ',').join(parts)}"


def _deep(name: str, value: JsonObject, safe: str) -> Iterator[str]:
    """`name[key]=value`, deeper objects and lists as most servers read them."""
    for key, part in value.items():
        inner = f"{name}[{quote(key, safe='')}]"
        if isinstance(part, dict):
            yield from _deep(inner, cast(JsonObject, part), safe)
        elif isinstance(part, list):
            yield from (f"{inner}[]={quote(_text(each), safe=safe)}" for each in cast(list[Any], part))
        else:
            yield f"{inner}={quote(_text(part), safe=safe)}"


def _cookie_parts(parameter: Parameter, value: Any) -> Iterator[str]:
    """`name=value` of a cookie: one for each item or property of an exploded value."""
    name = parameter.name
    if parameter.is_json:
        yield f"{name}={quote(one_line_json(value), safe='')}"
    elif parameter.explode and isinstance(value, list):
        yield from (f"{name}={quote(_text(each), safe='')}" for each in cast(list[Any], value))
    elif parameter.explode and isinstance(value, dict):
        pairs = cast(JsonObject, value).items()
        yield from (f"{quote(key, safe='')}={quote(_text(part), safe='')}" for key, part in pairs)
    else:
        yield f"{name}={_joined(value, ',', explode=False, encode=True)}"


def _header_text(parameter: Parameter, value: Any) -> str:
    if not parameter.is_json:
        _check_items(parameter, value)
    text = one_line_json(value) if parameter.is_json else _joined(value, ",", parameter.explode)
    if not _HEADER.fullmatch(text):
        raise InvalidArguments(
            f"`{parameter.argument}` is sent as a header and must be one line of plain characters.",
            instruction="Send the call again without line breaks and control characters in it.",
        )
    return text


def _encoded(body: Body, arguments: JsonObject, headers: dict[str, str]) -> bytes | None:
    value = _body_value(body, arguments)
    if value is None:
        return None
    headers["Content-Type"] = body.media_type if "*" not in body.media_type else "application/json"
    if body.kind == "json":
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if body.kind == "form":
        return "&".join(_form_parts(value)).encode()
    if body.kind == "multipart":
        return _multipart(body, value, headers)
    if body.kind == "bytes":
        return _from_base64(str(value), body.argument)
    return str(value).encode()


def _body_value(body: Body, arguments: JsonObject) -> Any:
    if body.argument:
        return arguments.get(body.argument)
    value = {name: arguments[argument] for argument, name in body.fields.items() if argument in arguments}
    return value if value or body.is_required else None


def _form_parts(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield quote_plus(_text(value))
        return
    for name, part in cast(JsonObject, value).items():
        yield from _form_field(quote_plus(name), part)


def _form_field(name: str, part: Any) -> Iterator[str]:
    if isinstance(part, list):
        yield from (f"{name}={quote_plus(_text(each))}" for each in cast(list[Any], part))
    elif isinstance(part, dict):
        for key, inner in cast(JsonObject, part).items():
            yield from _form_field(f"{name}[{quote_plus(key)}]", inner)
    else:
        yield f"{name}={quote_plus(_text(part))}"


def _multipart(body: Body, value: Any, headers: dict[str, str]) -> bytes:
    boundary = secrets.token_hex(16)
    headers["Content-Type"] = f"multipart/form-data; boundary={boundary}"
    pieces: list[bytes] = []
    for name, part in as_object(value).items():
        safe = quote(name, safe=" []().-_")
        is_file = name in body.binary
        for each in cast(list[Any], part) if isinstance(part, list) else [part]:
            disposition = f'Content-Disposition: form-data; name="{safe}"' + (f'; filename="{safe}"' if is_file else "")
            kind = "application/octet-stream" if is_file else "text/plain; charset=utf-8"
            if isinstance(each, (dict, list)):
                kind = "application/json"
            content = _from_base64(str(cast(object, each)), name) if is_file else _text(each).encode()
            pieces.append(f"--{boundary}\r\n{disposition}\r\nContent-Type: {kind}\r\n\r\n".encode() + content + b"\r\n")
    return b"".join([*pieces, f"--{boundary}--\r\n".encode()])


def _from_base64(text: str, argument: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArguments(
            f"`{argument}` must be Base64.", instruction="Send the bytes of the file as Base64 text."
        ) from None
