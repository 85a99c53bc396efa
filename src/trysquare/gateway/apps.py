"""Pages of servers behind the gateway (MCP Apps): under addresses of the gateway, labelled, and held back."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from trysquare.core.apps import MAX_PAGE, META_KEY, SCHEME, AppPage, framed_page
from trysquare.core.content import ResourceContents
from trysquare.core.errors import DeclarationError, ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list, as_object
from trysquare.core.metadata import APP_MIME_TYPE
from trysquare.gateway.models import ORIGIN, ServerConfig, ToolDefinition, name_prefix, upstream_name

OF_SERVERS: Final = f"{SCHEME}trysquare/servers/"
"""Begins the address of every page of a server: no server can pass its page off as ours or another one's."""
LONGEST: Final = 2_048
_AUDIENCES: Final = ("model", "app")
_FEATURES: Final = {
    "camera": "camera", "microphone": "microphone", "geolocation": "geolocation", "clipboardWrite": "clipboard-write",
}  # fmt: skip
_ORIGINS: Final = {
    "connectDomains": "connect", "resourceDomains": "load", "frameDomains": "frames", "baseUriDomains": "base",
}  # fmt: skip
_MOST_ORIGINS: Final = 32
_LOCAL: Final = (".localhost", ".local", ".internal", ".lan", ".home.arpa")


def is_page(address: str) -> bool:
    """Whether an address is one of a page, however it is written."""
    return address.strip().lower().startswith(SCHEME)


def page_address(server: str, address: str) -> str:
    """The address under which the page of a server is served."""
    return f"{OF_SERVERS}{quote(server, safe='')}/{address.strip()[len(SCHEME) :]}"


def page_of_server(address: str) -> tuple[str, str] | None:
    """The server and its own address of a served page; None for any other address."""
    if not address.startswith(OF_SERVERS):
        return None
    server, found, rest = address.removeprefix(OF_SERVERS).partition("/")
    return (unquote(server), f"{SCHEME}{rest}") if found else None


def read_link(meta: Any) -> JsonObject:
    """What `_meta` of a tool says of its page, as far as it is valid: `resourceUri` and `visibility`."""
    about = as_object(as_object(meta).get(META_KEY))
    address = about.get("resourceUri", as_object(meta).get("ui/resourceUri"))
    found: JsonObject = {}
    if isinstance(address, str) and is_page(address) and len(address) <= LONGEST:
        found["resourceUri"] = address.strip()
    audience = [one for one in _AUDIENCES if one in as_list(about.get("visibility"))]
    return {**found, "visibility": audience} if audience and len(audience) < len(_AUDIENCES) else found


def served_link(server: str, link: Mapping[str, Any]) -> JsonObject:
    """The same as it is listed, with the address under which the page is served."""
    address = link.get("resourceUri")
    return dict(link) if address is None else {**link, "resourceUri": page_address(server, address)}


def served_page(
    server: ServerConfig, address: str, part: JsonObject, tools: Sequence[ToolDefinition], resources: str
) -> ResourceContents:
    """The page of a server in a frame, below the name of the server; its messages are checked and passed on.

    `resources` begins the addresses of its other resources. Raises a `ToolError` for what is not a page.
    """
    kind = "".join(str(part.get("mimeType")).lower().split())
    html = part.get("text")
    if kind != APP_MIME_TYPE or not isinstance(html, str):
        raise _refused(server, f"it is not a text of the type `{APP_MIME_TYPE}`")
    if (size := len(html.encode("utf-8", "replace"))) > MAX_PAGE:
        raise _refused(server, f"it has {size:,} bytes; {MAX_PAGE:,} is the limit")
    about = as_object(as_object(part.get("_meta")).get(META_KEY))
    page = framed_page(
        {
            "server": server.name,
            "html": html,
            "tools": {one.name: upstream_name(server, one.name) for one in tools},
            "prefix": name_prefix(server),
            "pages": page_address(server.name, SCHEME),
            "resources": resources,
            "allow": "; ".join(_FEATURES[name] for name in _permissions(about)),
        },
        **_reach(about),
        permissions=_permissions(about),
    )
    meta: JsonObject = {META_KEY: page.meta(), ORIGIN: {"server": server.name}}
    return ResourceContents(
        uri=page_address(server.name, address), mime_type=APP_MIME_TYPE, text=page.html({}), meta=meta
    )


def _permissions(about: JsonObject) -> list[Any]:
    return [name for name in _FEATURES if isinstance(as_object(about.get("permissions")).get(name), dict)]


def _reach(about: JsonObject) -> dict[str, Any]:
    """The origins that a page may reach, without those of this machine and its network, and malformed ones."""
    given = as_object(about.get("csp"))
    return {
        name: [one for one in as_list(given.get(key))[:_MOST_ORIGINS] if isinstance(one, str) and is_public(one)]
        for key, name in _ORIGINS.items()
    }


def is_public(origin: str) -> bool:
    """Whether an origin is one of the public network, and not of this machine, an address or a local name."""
    try:
        AppPage("<p>", connect=[origin])
        host = (urlsplit(origin).hostname or "").removeprefix("*.").rstrip(".")
    except (DeclarationError, ValueError):
        return False
    if origin.startswith(("http:", "ws:")) or "." not in host or host.endswith(_LOCAL):
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        # `127.1` is an address too, and no domain ends in a number.
        return not host.rpartition(".")[2].isdecimal()
    return False


def _refused(server: ServerConfig, why: str) -> ToolError:
    return ToolError(
        f"The page of `{server.name}` cannot be shown: {why}.",
        code=ErrorCode.UPSTREAM_MALFORMED,
        instruction="Use the text of the tool's result.",
        fields={"server": server.name},
    )
