"""The differences between our server and the reference that do not fail the suite, each with its reason."""

from __future__ import annotations

from tests.differential.compare import Decision
from tests.differential.model import HTTP, LEGACY, MODERN, Era, Transport

UNREADABLE = (
    "frames / *",
    "before initialize / no JSON before initialize",
    "calls / call with a * as params",
    "methods / notification with a list as params",
)
PARSE_ERROR = "error -32700 with null id"
INVALID = ("error -32600", "error -32600 with null id")
NO_ID = ("methods / a request without an id", "methods / a call without an id")
WRONG_ID = tuple(f"frames / {kind} as id" for kind in ("null", "a *fraction", "a boolean", "a list", "an object"))

DECISIONS = (
    Decision(
        names=UNREADABLE,
        transports=("stdio",),
        reference="nothing",
        ours=(PARSE_ERROR, *INVALID, "error -32602", "result"),
        reason="The SDK drops a line that it cannot read, and the client waits for good. We answer.",
    ),
    Decision(
        names=("frames / bytes that are not UTF-8", "frames / an overlong encoding"),
        transports=("stdio",),
        reference="result",
        ours=(PARSE_ERROR,),
        reason="The SDK replaces bytes that are not UTF-8 and runs the tool with other arguments than were sent.",
    ),
    Decision(
        names=NO_ID,
        reference="nothing",
        ours=("error -32600 with null id",),
        status=400,
        reason="A request without an id is a mistake of the client, which would wait for a response that never comes.",
    ),
    Decision(
        names=WRONG_ID,
        eras=(LEGACY,),
        transports=HTTP,
        reference="nothing",
        ours=("error -32600 with null id",),
        status=400,
        reason="The SDK takes a request with an unusable id for a notification. In 2026-07-28 it answers as we do.",
    ),
    Decision(
        names=UNREADABLE,
        eras=(LEGACY,),
        transports=HTTP,
        reference="error -32602 with null id",
        ours=INVALID,
        status=400,
        reason="JSON-RPC's code for what is not a request is -32600. In 2026-07-28 the SDK answers as we do.",
    ),
    Decision(
        names=UNREADABLE,
        eras=(MODERN,),
        transports=HTTP,
        reference="error -32600 with null id",
        ours=("error -32600",),
        status=400,
        reason="Where the id can be read, the error carries it.",
    ),
    Decision(
        names=("frames / half a character",),
        transports=HTTP,
        reference="*",
        ours=("result",),
        status=200,
        reason="A client that cut a character in two gets the rest of its text: the half becomes U+FFFD.",
    ),
    Decision(
        names=("frames / half a character as id",),
        transports=HTTP,
        reference="*",
        ours=INVALID[1:],
        status=400,
        reason="No UTF-8 can carry the id back.",
    ),
    Decision(
        names=("frames / UTF-16", "frames / a byte order mark"),
        eras=(MODERN,),
        transports=HTTP,
        reference="*",
        ours=(PARSE_ERROR,),
        status=400,
        reason="JSON between systems is UTF-8 without a byte order mark (RFC 8259, 8.1).",
    ),
    Decision(
        names=("frames / a number with 100,000 digits",),
        transports=HTTP,
        reference=PARSE_ERROR,
        ours=("error -32602",),
        reason="A number may have any length in JSON. It is an argument that no tool can take.",
    ),
    Decision(
        names=("calls / call crashing",),
        reference="error *",
        ours=("error result",),
        reason="A crash of a tool is an error result, which the model reads; so it is in the SDK's high-level server.",
    ),
    Decision(
        names=("prompts and resources / prompt that fails", "prompts and resources / resource that crashes"),
        eras=(LEGACY,),
        reference="error 0",
        ours=("error -32603",),
        reason="JSON-RPC's code for a crash is -32603. In 2026-07-28 the SDK answers as we do.",
    ),
    Decision(
        names=("before initialize / initialize with*",),
        eras=(LEGACY,),
        transports=("sessions",),
        reference="error -32602",
        ours=("error -32602",),
        status=200,
        reason="An initialize that failed opens no session. The SDK hands out a session id with the error.",
    ),
    Decision(
        names=("cancellation / call linger",),
        eras=(LEGACY,),
        transports=("sessions",),
        reference="notifications/progress, error -32800",
        ours=("notifications/progress",),
        status=200,
        reason="A cancelled request gets no response, as the specification recommends; its stream ends.",
    ),
    Decision(
        names=("content / content type in capitals",),
        eras=(LEGACY,),
        transports=HTTP,
        reference="error -32600 with null id",
        ours=("result",),
        status=200,
        reason="Media types are compared without regard to case (RFC 9110, 8.3.1).",
    ),
    Decision(
        names=("content / a content type that only begins alike",),
        transports=HTTP,
        reference="*",
        ours=("error -32600 with null id",),
        status=400,
        reason="Any content type but JSON is refused with 400, as the SDK refuses `text/plain`; it lets this one pass.",
    ),
    Decision(
        names=("content / no accept",),
        transports=HTTP,
        reference="*",
        ours=("result",),
        status=200,
        reason="A request without Accept takes any media type (RFC 9110, 12.5.1).",
    ),
    Decision(
        names=("content / accept in two headers",),
        transports=HTTP,
        reference="*",
        ours=("result",),
        status=200,
        reason="Two header lines of one name are one list (RFC 9110, 5.3).",
    ),
    Decision(
        names=("headers / a name header with space around",),
        eras=(MODERN,),
        transports=HTTP,
        reference="error -32020",
        ours=("result",),
        status=200,
        reason="Space around a header's value does not belong to it (RFC 9110, 5.5).",
    ),
    Decision(
        names=("a session / an older version header in a session", "a session / two session headers"),
        eras=(LEGACY,),
        transports=("sessions",),
        reference="result",
        ours=("error -32600 with null id", "nothing"),
        status=400,
        reason="A client that contradicts its own handshake, or itself, is refused: proxies may read the other value.",
    ),
)

FAULTS: tuple[Decision, ...] = ()
"""Differences that are known to be wrong in our server, with `is_fault`, until they are repaired."""


def decisions(era: Era, transport: Transport) -> list[Decision]:
    """Those that apply to an era on a transport. Faults come first: they are the narrower ones."""
    return [each for each in (*FAULTS, *DECISIONS) if era in each.eras and transport in each.transports]


def is_known_fault(name: str, era: Era, transport: Transport) -> bool:
    """Whether an exchange is known to go wrong."""
    return any(each.is_fault and each.names_it(name) for each in decisions(era, transport))
