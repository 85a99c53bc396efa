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
WRONG_RESPONSES = ("frames / an error without a code", "frames / a response without an id", "frames / a text as result")
NOT_JSON = (
    "frames / bytes that are not UTF-8",
    "frames / an overlong encoding",
    "frames / a number with 100,000 digits",
)

DECISIONS = (
    Decision(
        names=UNREADABLE,
        transports=("stdio",),
        reference="nothing",
        ours=(PARSE_ERROR, *INVALID, "error -32602", "result"),
        reason="The SDK drops a line that it cannot read, and the client waits for good. We answer.",
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
        names=("calls / call with a * as params",),
        transports=HTTP,
        reference="error -3260? with null id",
        ours=("error -32602",),
        reason="The id can be read, and the params are what is wrong.",
    ),
    Decision(
        names=("methods / notification with a list as params",),
        transports=HTTP,
        reference="error -3260? with null id",
        ours=("nothing",),
        status=202,
        reason="A notification gets no response, whatever its params are; an unknown one is dropped.",
    ),
    Decision(
        names=WRONG_RESPONSES,
        eras=(LEGACY,),
        transports=HTTP,
        reference="error -32602 with null id",
        ours=("nothing",),
        status=202,
        reason="A response that nobody waits for is dropped, as over stdio.",
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
        names=("frames / a byte order mark",),
        eras=(LEGACY,),
        transports=HTTP,
        reference=PARSE_ERROR,
        ours=("result",),
        status=200,
        reason="A byte order mark may be ignored (RFC 8259, 8.1). In 2026-07-28 the SDK ignores it too.",
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
        names=("calls / call ask_form answered without an action",),
        eras=(LEGACY,),
        transports=("stdio", "sessions"),
        reference="elicitation/create, error result",
        ours=("elicitation/create, result", "elicitation/create, error result"),
        reason="An answer that does not fit counts as cancelled, never as accepted, and the tool goes on with that.",
    ),
    Decision(
        names=("before initialize / tools before initialize", "before initialize / call plain before initialize"),
        eras=(LEGACY,),
        transports=("stdio",),
        reference="error -32602",
        ours=("error -32600",),
        reason="The params are right; it is the request that may not come yet.",
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
        names=("methods / initialize with*",),
        eras=(MODERN,),
        transports=("stdio",),
        reference="error -32022",
        ours=("error -32022",),
        reason="The schema requires `requested`, also where the client proposed no version.",
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
        names=("calls / call a number", "calls / read a number"),
        eras=(MODERN,),
        transports=HTTP,
        reference="error -32020",
        ours=("error -32602",),
        status=400,
        reason="No header can repeat a name that is not a text: the params are wrong, not the headers.",
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

FAULTS = (
    Decision(
        names=("calls / call with * as progress token",),
        reference="error -32602",
        ours=("result",),
        reason="A progress token that is neither a text nor a whole number is ignored instead of refused.",
        is_fault=True,
    ),
    Decision(
        names=("calls / call lines from an unknown level",),
        eras=(MODERN,),
        reference="error -32602",
        ours=("result",),
        reason="An unknown log level in `_meta` is ignored instead of refused.",
        is_fault=True,
    ),
    Decision(
        names=("calls / call ask_page*", "only pages / call ask_page *"),
        eras=(MODERN,),
        reference="input required, result",
        ours=("input required, result",),
        reason="`elicitationId` is sent, which 2026-07-28 does not have.",
        is_fault=True,
    ),
    Decision(
        names=("no capabilities / call ask_page *", "only forms / call ask_page *"),
        eras=(MODERN,),
        reference="error -32021",
        ours=("error -32021",),
        reason='`requiredCapabilities` is {"elicitation.url": {}} instead of {"elicitation": {"url": {}}}.',
        is_fault=True,
    ),
    Decision(
        names=("no capabilities / *", "only pages / call ask_form *"),
        eras=(MODERN,),
        reference="error -32021",
        ours=("error result", "error -32603"),
        reason="A question to a client that cannot ask is not -32021, as sampling and roots are.",
        is_fault=True,
    ),
    Decision(
        names=NOT_JSON,
        reference="*",
        ours=("error -32602",),
        reason="What is not JSON inside `params` is -32602 (and 200 in sessions) instead of -32700 (and 400).",
        is_fault=True,
    ),
    Decision(
        names=("frames / UTF-16",),
        reference="*",
        ours=("result", "error -32602"),
        reason="UTF-16 is taken for JSON. The protocol is UTF-8.",
        is_fault=True,
    ),
    Decision(
        names=("frames / half a character as id",),
        reference="*",
        ours=("result with another id",),
        reason="A response carries another id than its request. An id that cannot be sent back has to be refused.",
        is_fault=True,
    ),
    Decision(
        names=("envelopes / *",),
        eras=(MODERN,),
        transports=("stdio",),
        reference="error -32602",
        ours=("error -32600",),
        reason="A request without a complete envelope is -32600 over stdio. The specification and our HTTP say -32602.",
        is_fault=True,
    ),
    Decision(
        names=("envelopes / *",),
        eras=(MODERN,),
        transports=HTTP,
        reference="error -32602",
        ours=("result",),
        reason="Over HTTP the client and its capabilities in the envelope are not checked, as they are over stdio.",
        is_fault=True,
    ),
    Decision(
        names=("calls / call ask_form with an answer that is no answer",),
        eras=(MODERN,),
        reference="error -32602",
        ours=("input required",),
        reason="`inputResponses` that are not objects are ignored instead of refused.",
        is_fault=True,
    ),
)


def decisions(era: Era, transport: Transport) -> list[Decision]:
    """Those that apply to an era on a transport. Faults come first: they are the narrower ones."""
    return [each for each in (*FAULTS, *DECISIONS) if era in each.eras and transport in each.transports]


def is_known_fault(name: str, era: Era, transport: Transport) -> bool:
    """Whether an exchange is known to go wrong."""
    return any(each.is_fault and each.names_it(name) for each in decisions(era, transport))
