"""A server that is reached by an address: its headers and how to sign in, in any client's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from trysquare.gateway.configuration.fields import Fields
from trysquare.gateway.configuration.launch import launch_digest, shown_url
from trysquare.gateway.server import OAuthClient, Place, ServerConfig, Transport

URL_KEYS = ("httpUrl", "serverUrl", "url")
_HEADER_KEYS = ("headers", "requestHeaders")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


def read_remote(name: str, tool_name: str, fields: Fields, transport: Transport) -> ServerConfig:
    """The server, with its address and headers checked."""
    written = fields.as_written().text(*URL_KEYS) or ""
    return ServerConfig(
        name=name,
        tool_name=tool_name,
        transport=transport,
        place=Place(file=str(fields.file.path), line=fields.file.line(fields.node)),
        shown=shown_url(written),
        launch_digest=launch_digest("remote", written),
        url=_url(fields),
        headers=_headers(fields),
        oauth=_oauth(fields),
    )


def looks_like_sse(fields: Fields) -> bool:
    """Whether the address is one of the old transport, by the path that its servers have."""
    if fields.member("httpUrl") is not None:
        return False
    parts = _split(fields.text(*URL_KEYS) or "")
    return parts is not None and parts.path.rstrip("/").endswith("/sse")


def _url(fields: Fields) -> str:
    url = fields.text(*URL_KEYS)
    if url is None:
        raise fields.wrong(None, "A remote server needs a `url`.")
    if _split(url) is None:
        raise fields.wrong(fields.member(*URL_KEYS), "must be an address that begins with https:// or http://.")
    return url


def _split(url: str) -> SplitResult | None:
    """The parts of a web address, or None where it is none."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_web else None


def _headers(fields: Fields) -> Mapping[str, str]:
    headers = {**(fields.table(*_HEADER_KEYS) or {}), **_bearer(fields)}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise fields.wrong(fields.member(*_HEADER_KEYS), "has a name that no header can have.")
        if not _HEADER_VALUE.fullmatch(value):
            raise fields.wrong(fields.member(*_HEADER_KEYS), f"has a value for `{name}` that no header can have.")
    return headers


def _bearer(fields: Fields) -> Mapping[str, str]:
    """`auth` as a text is a token to send, unless it asks for OAuth."""
    member = fields.member("auth")
    if member is None or not isinstance(member.node.value, str) or member.node.value == "oauth":
        return {}
    return {"Authorization": f"Bearer {fields.text('auth')}"}


def _oauth(fields: Fields) -> OAuthClient | None:
    member = fields.member("oauth", "auth")
    if member is None or isinstance(member.node.value, (str, bool)):
        return OAuthClient() if member is not None and member.node.value in ("oauth", True) else None
    inner = fields.inner(member.name)
    return None if inner is None else _oauth_client(inner)


def _oauth_client(inner: Fields) -> OAuthClient:
    scopes = inner.member("scopes", "scope")
    as_text = scopes is not None and isinstance(scopes.node.value, str)
    names = ("scopes", "scope")
    return OAuthClient(
        client_id=inner.text("clientId", "client_id", "CLIENT_ID"),
        client_secret=inner.text("clientSecret", "client_secret", "CLIENT_SECRET"),
        scopes=tuple((inner.text(*names) or "").split()) if as_text else inner.texts(*names) or (),
        callback_port=inner.count("callbackPort", "callback_port"),
    )
