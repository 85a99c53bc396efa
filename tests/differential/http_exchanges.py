"""The part of the table that only streamable HTTP has: headers, verbs, sessions, bodies."""

from __future__ import annotations

from typing import Any

from tests.differential import material
from tests.differential.exchanges import NEW, OLD, SESSIONS, STREAM, ask, call, notify, opens
from tests.differential.model import (
    ABSENT,
    HTTP,
    INITIALIZE,
    LEGACY,
    MODERN,
    Conversation,
    Exchange,
)

VERSION, METHOD, NAME = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"
SESSION = "Mcp-Session-Id"


def plain(name: str, *headers: tuple[str, str | None], **more: Any) -> Exchange:
    """A call of the plain tool with other headers than usual."""
    return ask(name, "tools/call", {"name": "plain"}, headers=headers, **more)


def visit(name: str, verb: str, *headers: tuple[str, str | None], **more: Any) -> Exchange:
    """A request without a body."""
    return Exchange(name=name, verb=verb, raw=b"", headers=headers, **more)


CONTENT = (
    plain("content type text", ("Content-Type", "text/plain")),
    plain("no content type", ("Content-Type", None)),
    plain("content type with a character set", ("Content-Type", "application/json; charset=utf-8")),
    plain("content type in capitals", ("Content-Type", "Application/JSON")),
    plain("a content type that only begins alike", ("Content-Type", "application/json-patch+json")),
    plain("accept JSON only", ("Accept", "application/json")),
    plain("accept streams only", ("Accept", "text/event-stream")),
    plain("accept nothing known", ("Accept", "image/png")),
    plain("accept anything", ("Accept", "*/*")),
    plain("accept by kind", ("Accept", "application/*, text/*")),
    plain("accept with weights", ("Accept", "text/event-stream;q=0.5, application/json;q=0.9")),
    plain("no accept", ("Accept", None)),
    plain("accept in two headers", ("Accept", "application/json"), doubled=(("Accept", "text/event-stream"),)),
    call("with a body that is too large", "echo", {"words": "x" * material.MAX_BODY}),
    plain("another host", ("Host", "example.com")),
    plain("a page of another origin", ("Origin", "https://example.com")),
    plain("a page of this host", ("Origin", "http://127.0.0.1:3000")),
    plain("another path", path="/other"),
    visit("PUT", "PUT"),
    visit("PATCH", "PATCH"),
    visit("HEAD", "HEAD"),
    visit("OPTIONS", "OPTIONS"),
)

MODERN_HEADERS = (
    plain("no method header", (METHOD, None)),
    plain("another method header", (METHOD, "tools/list")),
    plain("a method header in capitals", (METHOD, "TOOLS/CALL")),
    plain("no name header", (NAME, None)),
    plain("another name header", (NAME, "picture")),
    plain("an empty name header", (NAME, "")),
    plain("an encoded name header", (NAME, "=?base64?cGxhaW4=?=")),
    plain("an encoded name header that is another", (NAME, "=?base64?cGljdHVyZQ==?=")),
    plain("a badly encoded name header", (NAME, "=?base64?!!!?=")),
    plain("a name header with space around", (NAME, "  plain  ")),
    plain("two method headers", doubled=((METHOD, "tools/call"),)),
    plain("two name headers", doubled=((NAME, "plain"),)),
    plain("two version headers", doubled=((VERSION, MODERN),)),
    plain("two different version headers", doubled=((VERSION, LEGACY),)),
    plain("an unknown version header", (VERSION, "2099-01-01")),
    plain("an empty version header", (VERSION, "")),
    plain("a session header", (SESSION, "anything")),
    ask("a resource without a name header", "resources/read", {"uri": material.TEXT_URI}, headers=((NAME, None),)),
    ask("a prompt with another name header", "prompts/get", {"name": "simple"}, headers=((NAME, "greeting"),)),
    ask("a list with a name header", "tools/list", headers=((NAME, "plain"),), follows=False),
    call("route", arguments={"region": "north"}, headers=(("Mcp-Param-Region", "north"),)),
    call("route without its header", "route", {"region": "north"}),
    call("route with another header", "route", {"region": "north"}, headers=(("Mcp-Param-Region", "south"),)),
    call(
        "route with an encoded header", "route", {"region": "nörd"},
        headers=(("Mcp-Param-Region", "=?base64?bsO2cmQ=?="),),
    ),
    call("route with a header and no argument", "route", {}, headers=(("Mcp-Param-Region", "north"),)),
    call(
        "route with two headers", "route", {"region": "north"},
        headers=(("Mcp-Param-Region", "north"),), doubled=(("Mcp-Param-Region", "north"),),
    ),
    call("plain with a header of no argument", "plain", headers=(("Mcp-Param-Region", "north"),)),
    notify("a notification with a version only", "notifications/unknown", headers=((METHOD, None),)),
    notify("a notification of an unknown version", "notifications/unknown", headers=((VERSION, "2099-01-01"),)),
    visit("GET", "GET"),
    visit("DELETE", "DELETE"),
)  # fmt: skip

UNKNOWN_SESSION = ((SESSION, "0123456789abcdef0123456789abcdef"),)
IN_A_SESSION = (
    plain("no session header", (SESSION, None)),
    plain("an unknown session", *UNKNOWN_SESSION),
    plain("an empty session header", (SESSION, "")),
    plain("a session header with signs", (SESSION, "../../etc")),
    notify("a notification without a session", "notifications/unknown", headers=((SESSION, None),)),
    notify("a notification of an unknown session", "notifications/unknown", headers=UNKNOWN_SESSION),
    ask("initialize in an unknown session", "initialize", INITIALIZE, headers=UNKNOWN_SESSION),
    plain("no version header in a session", (VERSION, None)),
    plain("an older version header in a session", (VERSION, "2025-03-26")),
    plain("an unknown version header in a session", (VERSION, "1999-01-01")),
    plain("a version header without meaning", (VERSION, "latest")),
    plain("a modern version header in a session", (VERSION, MODERN)),
    plain("an unneeded method header", (METHOD, "tools/list")),
    plain("two session headers", doubled=((SESSION, "other"),)),
    visit("GET without a session", "GET", (SESSION, None)),
    visit("GET of an unknown session", "GET", *UNKNOWN_SESSION),
    visit("GET that accepts JSON only", "GET", ("Accept", "application/json")),
    STREAM,
    visit("GET a second time", "GET"),
    visit("DELETE without a session", "DELETE", (SESSION, None)),
    visit("DELETE an unknown session", "DELETE", *UNKNOWN_SESSION),
    visit("DELETE", "DELETE"),
    plain("a call after DELETE"),
    notify("a notification after DELETE", "notifications/unknown"),
    visit("GET after DELETE", "GET"),
    visit("DELETE again", "DELETE"),
)

WITHOUT_SESSIONS = (
    plain("no version header without sessions", (VERSION, None)),
    plain("an older version header without sessions", (VERSION, "2025-03-26")),
    plain("an unknown version header without sessions", (VERSION, "1999-01-01")),
    plain("a session that nobody gave", *UNKNOWN_SESSION),
    opens("without a session"),
    opens("with an unknown version without a session", protocolVersion="1999-01-01"),
    opens("with an older version without a session", protocolVersion="2024-11-05"),
    opens("with no params without a session", protocolVersion=ABSENT, capabilities=ABSENT, clientInfo=ABSENT),
    notify("initialized without a session", "notifications/initialized"),
    visit("DELETE without sessions", "DELETE"),
)

ONLY_HTTP = (
    Conversation(name="content", exchanges=CONTENT, transports=HTTP),
    Conversation(name="headers", exchanges=MODERN_HEADERS, eras=NEW, transports=HTTP),
    Conversation(name="a session", exchanges=IN_A_SESSION, eras=OLD, transports=SESSIONS),
    Conversation(name="without sessions", exchanges=WITHOUT_SESSIONS, eras=OLD, transports=("stateless",)),
)
