"""The part Calls: the ledger of the calls to the servers behind the gateway."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from starlette.responses import Response

from trysquare.core.errors import NotFound
from trysquare.core.threads import run_in_thread
from trysquare.store.call_ledger import CallFilter, CallRecord

if TYPE_CHECKING:
    from trysquare.console.app import Visit

SHOWN = 50
OUTCOMES = ("done", "error", "not_sent", "sending", "sent_unknown")


async def show(visit: Visit) -> Response:
    """The latest calls that fit the filter."""
    query = visit.request.query_params
    given = {name: query.get(name, "").strip() for name in ("server", "tool", "principal", "outcome", "slower")}
    wanted = CallFilter(
        server=given["server"] or None,
        tool=given["tool"] or None,
        principal=given["principal"] or None,
        state=given["outcome"] if given["outcome"] in OUTCOMES[2:] else "done" if given["outcome"] else None,
        is_error=True if given["outcome"] == "error" else False if given["outcome"] == "done" else None,
        slower_than=_seconds(given["slower"]),
    )
    ledger = visit.console.workspace.ledger
    calls = await run_in_thread(lambda: ledger.find_all(wanted, limit=SHOWN))
    template = "_call_rows.html" if visit.is_part else "calls.html"
    return visit.page(template, part="calls", calls=calls, given=given, outcomes=OUTCOMES)


async def show_call(visit: Visit) -> Response:
    """One call in full."""
    ledger, wanted = visit.console.workspace.ledger, visit.request.path_params["call"]
    found = await run_in_thread(lambda: ledger.find_all(CallFilter(id=wanted), limit=1))
    if not found:
        raise NotFound("There is no such call in the ledger.", instruction="It keeps the latest calls only.")
    return visit.page(
        "call.html", part="calls", call=found[0], arguments=_arguments(found[0]), command=command(found[0])
    )


def command(call: CallRecord) -> str:
    """The call as a command for a terminal. Secrets are masked in it, as in the ledger."""
    inputs = json.dumps({"tool_name": call.tool, "tool_inputs": _arguments(call)}, ensure_ascii=False)
    given = json.dumps({"action": "execute", **json.loads(inputs)}, ensure_ascii=False)
    return shlex.join(["trysquare", "call", f"mcp_{call.server}", given])


def _arguments(call: CallRecord) -> object:
    try:
        return json.loads(call.arguments)
    except ValueError:
        return call.arguments


def _seconds(text: str) -> float | None:
    try:
        return float(text) / 1000 if text else None
    except ValueError:
        return None


VIEWS = (("GET", "/calls", show), ("GET", "/calls/{call}", show_call))
