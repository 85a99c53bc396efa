"""The table: what a client sends to both servers."""

from __future__ import annotations

from typing import Any

from tests.differential import material
from tests.differential.model import (
    ABSENT,
    ACCEPTED,
    CAPABILITIES_KEY,
    CLIENT_KEY,
    EVERYTHING,
    HTTP,
    INITIALIZE,
    INITIALIZED,
    LEGACY,
    LOG_LEVEL_KEY,
    MODERN,
    VERSION_KEY,
    Conversation,
    Exchange,
    opening,
)

STDIO = ("stdio",)
SESSIONS = ("sessions",)
OLD = (LEGACY,)
NEW = (MODERN,)


def ask(name: str, method: Any, params: Any = ABSENT, **more: Any) -> Exchange:
    """A request."""
    return Exchange(name=name, method=method, params=params, **more)


def call(name: str, tool: str | None = None, arguments: Any = ABSENT, **more: Any) -> Exchange:
    """A `tools/call`; the tool has the name of the exchange unless it is given."""
    params = {"name": name if tool is None else tool, "arguments": arguments}
    return ask(f"call {name}", "tools/call", {key: part for key, part in params.items() if part is not ABSENT}, **more)


def notify(name: str, method: str, params: Any = ABSENT, **more: Any) -> Exchange:
    """A notification."""
    return ask(name, method, params, id=ABSENT, **more)


def raw(name: str, frame: bytes, **more: Any) -> Exchange:
    """Bytes that no JSON value makes."""
    return Exchange(name=name, raw=frame, **more)


def answering(form: Any) -> dict[str, Any]:
    """The client's usual answers, except to a question for the user."""
    return {**ACCEPTED, "elicitation/create": form}


def complete(name: str, ref: Any, argument: Any, **more: Any) -> Exchange:
    """A `completion/complete`."""
    return ask(f"complete {name}", "completion/complete", {"ref": ref, "argument": argument, **more})


LISTS = (
    ask("tools", "tools/list"),
    ask("tools with empty params", "tools/list", {}, follows=False),
    ask("prompts", "prompts/list"),
    ask("resources", "resources/list"),
    ask("templates", "resources/templates/list"),
    *(
        ask(f"{method} with an unknown cursor", method, {"cursor": "bm9uZQ"})
        for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
    ),
    ask("tools with a cursor that is not base64", "tools/list", {"cursor": "\u00e4 !"}),
    ask("tools with an empty cursor", "tools/list", {"cursor": ""}),
    ask("tools with a number as cursor", "tools/list", {"cursor": 5}),
    ask("tools with a null cursor", "tools/list", {"cursor": None}, follows=False),
    ask("tools with an unknown parameter", "tools/list", {"bogus": 1}, follows=False),
)

CALLS = (
    call("plain"),
    call("plain with empty arguments", "plain", {}),
    call("plain with null arguments", "plain", None),
    call("picture"),
    call("sound"),
    call("embedded"),
    call("embedded_blob"),
    call("linked"),
    call("mixed"),
    call("structured"),
    call("echo", arguments={"words": "ä € 🙂 \u2028 \x00 \x7f"}),
    call("echo with 100,000 characters", "echo", {"words": "e" * 100_000}),
    call("echo with an empty text", "echo", {"words": ""}),
    call("add", arguments={"a": 1, "b": -4}),
    call("add with a default", "add", {"a": 2**53}),
    call("add without a required argument", "add", {"b": 1}),
    call("add with a wrong type", "add", {"a": [1]}),
    call("add with an unknown argument", "add", {"a": 1, "c": 1}),
    call("refused"),
    call("crashing"),
    call("an unknown tool", "nothing"),
    call("an empty name", ""),
    call("add again", "add", {"a": 1}),
)

WRONG_PARAMS = (
    ask("call without params", "tools/call"),
    ask("call without a name", "tools/call", {"arguments": {}}),
    ask("call a number", "tools/call", {"name": 5}),
    ask("call null", "tools/call", {"name": None}),
    call("with a list as arguments", "plain", []),
    call("with a text as arguments", "plain", "{}"),
    ask("call with a list as params", "tools/call", ["plain"]),
    ask("call with a text as params", "tools/call", "plain"),
    ask("call with null params", "tools/call", None),
    ask("call with a list as meta", "tools/call", {"name": "plain", "_meta": []}),
    ask("call with a text as meta", "tools/call", {"name": "plain", "_meta": "x"}),
    ask("call with null meta", "tools/call", {"name": "plain", "_meta": None}),
    call("with an object as progress token", "steps", meta={"progressToken": {}}),
    call("with null as progress token", "steps", meta={"progressToken": None}),
    call("with a fraction as progress token", "steps", meta={"progressToken": 1.5}),
    ask("get a prompt without params", "prompts/get"),
    ask("get a prompt without a name", "prompts/get", {"arguments": {}}),
    ask("get a prompt with a list as arguments", "prompts/get", {"name": "simple", "arguments": []}),
    ask("get a prompt with a number as argument", "prompts/get", {"name": "greeting", "arguments": {"name": 5}}),
    ask("read without params", "resources/read"),
    ask("read a number", "resources/read", {"uri": 5}),
    ask("complete without params", "completion/complete"),
)

PROGRESS_AND_LOGS = (
    call("steps without a progress token", "steps"),
    call("steps", meta={"progressToken": 7}),
    call("steps with a text as progress token", "steps", meta={"progressToken": "seven"}),
    call("lines without a level", "lines"),
    call("lines from info", "lines", meta={LOG_LEVEL_KEY: "info"}),
    call("lines from error", "lines", meta={LOG_LEVEL_KEY: "error"}),
    call("lines from an unknown level", "lines", meta={LOG_LEVEL_KEY: "loud"}),
    ask("set the level", "logging/setLevel", {"level": "warning"}),
    call("lines after setting the level", "lines"),
    ask("set an unknown level", "logging/setLevel", {"level": "loud"}),
    ask("set no level", "logging/setLevel"),
)

QUESTIONS = (
    call("ask_form"),
    call("ask_form declined", "ask_form", answers=answering({"action": "decline"})),
    call("ask_form cancelled", "ask_form", answers=answering({"action": "cancel"})),
    call("ask_page"),
    call("ask_page declined", "ask_page", answers=answering({"action": "decline"})),
    call("ask_model"),
    call("ask_roots"),
    call("ask_several"),
    call("ask_twice"),
    call("ask_form without following", "ask_form", follows=False, eras=NEW),
    call("ask_form answered with an error", "ask_form", answers=answering(ValueError(-32603)), eras=OLD),
    call("ask_form answered without an action", "ask_form", answers=answering({}), eras=OLD),
    ask("prompt that asks", "prompts/get", {"name": "asking"}),
    ask("resource that asks", "resources/read", {"uri": material.ASKING_URI}),
    *(
        ask(f"call ask_form with {name}", "tools/call", {"name": "ask_form", **given}, eras=NEW, follows=False)
        for name, given in {
            "a state that was never given": {"requestState": "bm9uZQ", "inputResponses": {}},
            "an empty state": {"requestState": "", "inputResponses": {}},
            "a number as state": {"requestState": 5},
            "answers but no state": {"inputResponses": {"name": ACCEPTED["elicitation/create"]}},
            "a list as answers": {"inputResponses": []},
            "an answer that is no answer": {"inputResponses": {"name": 5}},
        }.items()
    ),
)

PROMPTS = (
    ask("prompt", "prompts/get", {"name": "simple"}),
    ask("prompt with empty arguments", "prompts/get", {"name": "simple", "arguments": {}}),
    ask("prompt with arguments", "prompts/get", {"name": "greeting", "arguments": {"name": "Ada", "tone": "cold"}}),
    ask("prompt with a default", "prompts/get", {"name": "greeting", "arguments": {"name": "Ada"}}),
    ask("prompt without a required argument", "prompts/get", {"name": "greeting"}),
    ask("prompt with an unknown argument", "prompts/get", {"name": "simple", "arguments": {"bogus": "x"}}),
    ask("prompt with an image", "prompts/get", {"name": "pictured"}),
    ask("prompt that fails", "prompts/get", {"name": "failing"}),
    ask("unknown prompt", "prompts/get", {"name": "nothing"}),
)

RESOURCES = (
    ask("text resource", "resources/read", {"uri": material.TEXT_URI}),
    ask("binary resource", "resources/read", {"uri": material.BLOB_URI}),
    ask("resource of a template", "resources/read", {"uri": "test://items/17"}),
    ask("resource of a template with an empty part", "resources/read", {"uri": "test://items/"}),
    ask("resource that crashes", "resources/read", {"uri": material.CRASHING_URI}),
    ask("unknown resource", "resources/read", {"uri": "test://nothing"}),
    ask("resource at an address that is no address", "resources/read", {"uri": "nothing at all"}),
    ask("resource at an empty address", "resources/read", {"uri": ""}),
)

PROMPT = {"type": "ref/prompt", "name": "greeting"}
COMPLETIONS = (
    complete("a prompt", PROMPT, {"name": "name", "value": "value00"}),
    complete("with more than a hundred values", PROMPT, {"name": "name", "value": "value"}),
    complete("with no value", PROMPT, {"name": "name", "value": "zzz"}),
    complete("with context", PROMPT, {"name": "tone", "value": "value14"}, context={"arguments": {"name": "Ada"}}),
    complete("a prompt without completions", {**PROMPT, "name": "simple"}, {"name": "x", "value": ""}),
    complete("an unknown prompt", {**PROMPT, "name": "nothing"}, {"name": "name", "value": ""}),
    complete("a template", {"type": "ref/resource", "uri": material.TEMPLATE}, {"name": "key", "value": "value1"}),
    complete("an unknown template", {"type": "ref/resource", "uri": "test://{no}"}, {"name": "no", "value": ""}),
    complete("an unknown kind of reference", {"type": "ref/tool", "name": "x"}, {"name": "x", "value": ""}),
    complete("without an argument", PROMPT, {}),
    complete("a number", PROMPT, {"name": "name", "value": 5}),
    complete("with a list as context", PROMPT, {"name": "name", "value": "value00"}, context=[]),
)

OTHER_METHODS = (
    ask("ping", "ping"),
    ask("ping with params", "ping", {}),
    ask("discover", "server/discover"),
    ask("discover with empty params", "server/discover", {}),
    ask("an unknown method", "no/such"),
    ask("an unknown method with params", "no/such", {"a": 1}),
    ask("a method in other letters", "Tools/List"),
    ask("a method of JSON-RPC", "rpc.discover"),
    ask("a method that is a notification", "notifications/initialized"),
    ask("an empty method", ""),
    ask("a method of tasks", "tasks/get", {"taskId": "x"}),
    ask("a method of the server", "sampling/createMessage", {"messages": [], "maxTokens": 1}),
    ask("subscribe", "resources/subscribe", {"uri": material.WATCHED_URI}),
    ask("subscribe to nothing", "resources/subscribe"),
    ask("unsubscribe", "resources/unsubscribe", {"uri": material.WATCHED_URI}),
    ask("unsubscribe what was not subscribed", "resources/unsubscribe", {"uri": "test://nothing"}),
    ask("initialize with wrong params", "initialize", {"protocolVersion": 5}, eras=NEW),
    ask("initialize without params", "initialize", eras=NEW),
    ask("listen to nothing", "subscriptions/listen", eras=OLD),
    ask("listen without params", "subscriptions/listen", {}, eras=NEW),
    ask("listen with a list", "subscriptions/listen", {"notifications": []}, eras=NEW),
)

NOTIFICATIONS = (
    notify("an unknown notification", "notifications/unknown"),
    notify("an unknown notification with params", "notifications/unknown", {"a": 1}),
    notify("initialized once more", "notifications/initialized"),
    notify("cancelled nothing", "notifications/cancelled", {"requestId": 999_999}),
    notify("cancelled without an id", "notifications/cancelled", {"reason": "none"}),
    notify("cancelled an object", "notifications/cancelled", {"requestId": {}}),
    notify("progress of nothing", "notifications/progress", {"progressToken": 999_999, "progress": 1}),
    notify("progress without a token", "notifications/progress", {}),
    notify("roots changed", "notifications/roots/list_changed"),
    notify("notification with a list as params", "notifications/unknown", [1]),
    notify("a request without an id", "tools/list"),
    notify("a call without an id", "tools/call", {"name": "plain"}),
)

CALL = b'"method":"tools/call","params":{"name":"echo","arguments":{"words":%b},"_meta":%%META%%}}'


def echoed(words: bytes, request_id: bytes = b"%ID%") -> bytes:
    """A call with any bytes as its argument."""
    return b'{"jsonrpc":"2.0","id":' + request_id + b"," + CALL % words


ECHO = (("Mcp-Method", "tools/call"), ("Mcp-Name", "echo"))
FRAMES = (
    raw("no JSON", b"{nonsense"),
    raw("half a message", b'{"jsonrpc":"2.0","id":%ID%,"method":"tools/li'),
    raw("something after a message", b'{"jsonrpc":"2.0","id":%ID%,"method":"ping"} x'),
    raw("an empty object", b"{}"),
    raw("an empty list", b"[]"),
    raw("a batch", b'[{"jsonrpc":"2.0","id":%ID%,"method":"tools/list","params":{"_meta":%META%}}]'),
    raw("a text", b'"ping"'),
    raw("a number", b"42"),
    raw("null", b"null"),
    raw("bytes that are not UTF-8", echoed(b'"\xff\xfe"'), headers=ECHO),
    raw("an overlong encoding", echoed(b'"\xc0\xaf"'), headers=ECHO),
    raw("UTF-16", '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16-le")),
    raw("a byte order mark", b"\xef\xbb\xbf" + echoed(b'"x"'), headers=ECHO),
    raw("half a character", echoed(b'"a \\ud83d b"'), headers=ECHO),
    raw("half a character as id", echoed(b'"x"', b'"\\ud83d"'), headers=ECHO),
    raw("a whole character in two halves", echoed(b'"\\ud83d\\ude42"'), headers=ECHO),
    raw("a number with 100,000 digits", echoed(b"9" * 100_000), headers=ECHO),
    raw("lists 100,000 deep", echoed(b"[" * 100_000 + b"]" * 100_000), headers=ECHO),
    raw("not a number", echoed(b"NaN"), headers=ECHO),
    raw("a control character in a text", echoed(b'"a\tb"'), headers=ECHO),
    raw("the same member twice", echoed(b'"x","words":"y"'), headers=ECHO),
    raw("white space around", b" \t" + echoed(b'"x"') + b" \r", headers=ECHO),
    raw("an empty line", b"", transports=STDIO),
    raw("an empty body", b"", transports=HTTP),
)


def listing(name: str, **members: Any) -> Exchange:
    """A list request with other members of the frame than usual."""
    return Exchange(name=name, method="tools/list", follows=False, members=members)


def identified(name: str, identifier: Any) -> Exchange:
    """A list request with this id."""
    return Exchange(name=name, method="tools/list", follows=False, id=identifier)


def response(name: str, **members: Any) -> Exchange:
    """A response of the client to nothing that the server asked."""
    return Exchange(name=name, members={"method": ABSENT, "params": ABSENT, **members})


REFUSAL = {"code": -32603, "message": "x"}
MEMBERS = (
    listing("no version", jsonrpc=ABSENT),
    listing("version 1.0", jsonrpc="1.0"),
    listing("a number as version", jsonrpc=2.0),
    listing("no method", method=ABSENT),
    listing("a number as method", method=5),
    listing("null as method", method=None),
    listing("an unknown member", bogus=1),
    identified("null as id", None),
    identified("a fraction as id", 1.5),
    identified("a whole fraction as id", 1.0),
    identified("a boolean as id", True),
    identified("a list as id", [1]),
    identified("an object as id", {}),
    identified("an empty text as id", ""),
    identified("a text as id", "request ä"),
    identified("a digit as text as id", "7"),
    identified("zero as id", 0),
    identified("a negative id", -1),
    identified("a large number as id", 2**53 + 1),
    identified("a huge number as id", 10**30),
    identified("a long text as id", "i" * 1000),
    response("a response that nobody waits for", result={}),
    response("an error that nobody waits for", error=REFUSAL),
    response("an error without a code", error={}),
    response("a result and an error", result={}, error=REFUSAL),
    response("a response without an id", id=ABSENT, result={}),
    response("a text as result", result="x"),
)

LINGERING: Any = {"meta": {"progressToken": "linger"}, "cancels": True}
CANCELLATION = (
    call("linger", eras=OLD, transports=(*STDIO, *SESSIONS), **LINGERING),
    call("await_cancelled", eras=OLD, transports=(*STDIO, *SESSIONS)),
    call("linger", eras=NEW, **LINGERING),
    call("await_cancelled", eras=NEW),
)

TOOLS_CHANGED, PROMPTS_CHANGED = "notifications/tools/list_changed", "notifications/prompts/list_changed"
RESOURCES_CHANGED, UPDATED = "notifications/resources/list_changed", "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
STREAM = Exchange(name="open the stream", verb="GET", raw=b"", stays_open=True, transports=SESSIONS)
ALL_CHANGES = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": [material.WATCHED_URI],
}
CHANGES = (
    call("touch", until=(UPDATED,)),
    call("change_tools", until=(TOOLS_CHANGED,)),
    ask("tools after a change", "tools/list"),
    call("extra"),
    call("change_tools back", "change_tools", until=(TOOLS_CHANGED,)),
    call("extra after it was removed", "extra"),
    call("change_prompts", until=(PROMPTS_CHANGED,)),
    ask("prompts after a change", "prompts/list"),
    ask("prompt that was added", "prompts/get", {"name": "extra_prompt"}),
    call("change_prompts back", "change_prompts", until=(PROMPTS_CHANGED,)),
    call("change_resources", until=(RESOURCES_CHANGED,)),
    ask("resources after a change", "resources/list"),
    ask("resource that was added", "resources/read", {"uri": material.ADDED_URI}),
    call("change_resources back", "change_resources", until=(RESOURCES_CHANGED,)),
)
SUBSCRIPTIONS = (
    STREAM,
    call("touch before subscribing", "touch"),
    ask("subscribe to the watched resource", "resources/subscribe", {"uri": material.WATCHED_URI}),
    *CHANGES,
    ask("unsubscribe from the watched resource", "resources/unsubscribe", {"uri": material.WATCHED_URI}),
    call("touch after unsubscribing", "touch"),
)
LISTENING = (
    ask("listen", "subscriptions/listen", {"notifications": ALL_CHANGES}, stays_open=True, until=(ACKNOWLEDGED,)),
    *CHANGES,
)

OPENED = opening(EVERYTHING)


def opens(name: str, transports: Any = ("stdio", "sessions", "stateless"), **changes: Any) -> Exchange:
    """An `initialize` that differs from the usual one."""
    params = {key: value for key, value in {**INITIALIZE, **changes}.items() if value is not ABSENT}
    return ask(f"initialize {name}", "initialize", params, transports=transports)


LIFECYCLE = (
    Conversation(
        name="before initialize",
        greets=False,
        eras=OLD,
        exchanges=(
            notify("a notification before initialize", "notifications/unknown"),
            ask("tools before initialize", "tools/list", follows=False),
            call("plain before initialize", "plain"),
            ask("an unknown method before initialize", "no/such"),
            ask("wrong params before initialize", "tools/call"),
            ask("ping before initialize", "ping"),
            raw("no JSON before initialize", b"{nonsense"),
            opens("without params", protocolVersion=ABSENT, capabilities=ABSENT, clientInfo=ABSENT),
            opens("without a version", protocolVersion=ABSENT),
            opens("with a number as version", protocolVersion=5),
            opens("without capabilities", capabilities=ABSENT),
            opens("with a list as capabilities", capabilities=[]),
            opens("without clientInfo", clientInfo=ABSENT),
            opens("with a client without a name", clientInfo={"version": "1"}),
            OPENED,
            ask("tools before initialized", "tools/list", follows=False),
            INITIALIZED,
            ask("tools after initialized", "tools/list", follows=False),
            ask("initialize a second time", "initialize", INITIALIZE),
            ask("tools after the second initialize", "tools/list", follows=False),
        ),
    ),
    *(
        Conversation(
            name=f"initialize with {version or 'an empty version'}",
            greets=False,
            eras=OLD,
            exchanges=(
                opens(f"with {version or 'an empty version'}", protocolVersion=version),
                ask(f"tools of {version or 'an empty version'}", "tools/list", follows=False),
            ),
            transports=(*STDIO, *SESSIONS),
        )
        for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2026-07-28", "1999-01-01", "")
    ),
)
CROSSED_ERAS = (
    Conversation(
        name="an envelope in a session",
        eras=OLD,
        transports=STDIO,
        exchanges=(
            ask(
                "tools with an envelope in a session",
                "tools/list",
                {"_meta": {VERSION_KEY: MODERN, CLIENT_KEY: {}, CAPABILITIES_KEY: {}}},
            ),
        ),
    ),
    Conversation(
        name="initialize after an envelope",
        eras=NEW,
        transports=STDIO,
        exchanges=(
            ask("discover first", "server/discover"),
            ask("initialize after discover", "initialize", INITIALIZE),
            ask("initialize without an envelope after discover", "initialize", INITIALIZE, enveloped=False),
            ask("tools without an envelope", "tools/list", enveloped=False),
        ),
    ),
)


def enveloped(name: str, **changes: Any) -> Exchange:
    """A list request whose envelope differs from the usual one."""
    keys = {"version": VERSION_KEY, "client": CLIENT_KEY, "capabilities": CAPABILITIES_KEY}
    return ask(
        f"envelope {name}", "tools/list", meta={keys[key]: value for key, value in changes.items()}, follows=False
    )


ENVELOPES = (
    enveloped("without a version", version=ABSENT),
    enveloped("without capabilities", capabilities=ABSENT),
    enveloped("without a client", client=ABSENT),
    enveloped("with an unknown version", version="2099-01-01"),
    enveloped("with the version of sessions", version=LEGACY),
    enveloped("with an empty version", version=""),
    enveloped("with a number as version", version=5),
    enveloped("with null as version", version=None),
    enveloped("with a text as client", client="x"),
    enveloped("with a client without a name", client={"version": "1"}),
    enveloped("with a list as capabilities", capabilities=[]),
    enveloped("with null as capabilities", capabilities=None),
    enveloped("with an unknown capability", capabilities={"bogus": {}}),
    enveloped("with nothing in it", version=ABSENT, client=ABSENT, capabilities=ABSENT),
    ask("no envelope at all", "tools/list", enveloped=False),
    ask("no envelope for a call", "tools/call", {"name": "plain"}, enveloped=False),
    ask("no envelope for an unknown method", "no/such", {}, enveloped=False),
)

NO_CAPABILITIES = (
    call("ask_form without the capability", "ask_form"),
    call("ask_page without the capability", "ask_page"),
    call("ask_model without the capability", "ask_model"),
    call("ask_roots without the capability", "ask_roots"),
    call("ask_several without the capability", "ask_several"),
    ask("prompt that asks without the capability", "prompts/get", {"name": "asking"}),
    call("plain without capabilities", "plain"),
)
ONLY_PAGES = (
    call("ask_form of a client with pages only", "ask_form"),
    call("ask_page of a client with pages only", "ask_page"),
)
ONLY_FORMS = (
    call("ask_form of a client with forms only", "ask_form"),
    call("ask_page of a client with forms only", "ask_page"),
)

COMMON = (
    Conversation(name="lists", exchanges=LISTS),
    Conversation(name="calls", exchanges=(*CALLS, *WRONG_PARAMS, *PROGRESS_AND_LOGS, *QUESTIONS)),
    Conversation(name="prompts and resources", exchanges=(*PROMPTS, *RESOURCES, *COMPLETIONS)),
    Conversation(name="methods", exchanges=(*OTHER_METHODS, *NOTIFICATIONS)),
    Conversation(name="frames", exchanges=(*FRAMES, *MEMBERS)),
    Conversation(name="cancellation", exchanges=CANCELLATION),
    Conversation(name="envelopes", exchanges=ENVELOPES, eras=NEW),
    Conversation(name="no capabilities", exchanges=NO_CAPABILITIES, capabilities={}),
    Conversation(name="only pages", exchanges=ONLY_PAGES, capabilities={"elicitation": {"url": {}}}),
    Conversation(name="only forms", exchanges=ONLY_FORMS, capabilities={"elicitation": {}}),
    Conversation(name="subscriptions", exchanges=SUBSCRIPTIONS, eras=OLD, transports=(*STDIO, *SESSIONS)),
    Conversation(name="listening", exchanges=LISTENING, eras=NEW),
)
