"""consented: a person agrees before the tool runs, in a way that the model cannot fake.

The person is asked through the client where it can ask. Where it cannot, the call fails with a code, and runs once
after the person approved that code in their own terminal. Either way a receipt is kept before the tool starts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from trysquare.core.action_union import DISCRIMINATOR
from trysquare.core.consent import ConsentDecision, ConsentRequest, arguments_digest
from trysquare.core.context import CallContext
from trysquare.core.errors import ConsentNeeded, ConsentRefused, ErrorCode, ToolError
from trysquare.core.healing import unwrapped
from trysquare.core.metadata import Consent
from trysquare.core.result import Result, dump_json, jsonable
from trysquare.core.secrets import masked
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.core.types import JsonObject

MAX_VALUE = 200
MAX_ARGUMENTS = 1500
_PLACE = re.compile(r"\{(\w+)\}")

ANSWER_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "approve": {
            "type": "boolean",
            "title": "Approve this call",
            "description": "Yes lets it run once with exactly these arguments",
        }
    },
    "required": ["approve"],
}


class Approvals(Protocol):
    """Where decisions are kept. The methods may wait for a disk; they are called in threads."""

    def decide(self, request: ConsentRequest) -> ConsentDecision:
        """Use up an approval of this very call, or report its refusal, or open it for a person's decision."""
        ...

    def answer(self, request: ConsentRequest, *, code: str, approved: bool, by: str, how: str) -> bool:
        """Take the person's answer that came through the client, once: False for one that was taken before."""
        ...


def consented(tool: Tool, *, approvals: Approvals | None) -> Tool:
    """Ask a person before each call, if the tool's metadata wants that. Without `approvals` such a tool never runs."""
    consent = tool.metadata.consent
    if consent is None:
        return tool
    inner = tool.call

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        # Checked first: nobody should be asked about a call that cannot run.
        parsed = tool.arguments.parse(tool.name, arguments)
        if consent.actions and _action(parsed) not in consent.actions:
            return await inner(arguments, context)
        if approvals is None:
            raise ToolError(
                f"`{tool.name}` needs a person's consent, and there is no state file to keep the receipt in.",
                code=ErrorCode.STATE_UNAVAILABLE,
                instruction="Tell the person that this server was started without a state folder.",
            )
        await agreed(request_for(tool, consent, arguments, context), approvals, context)
        return await inner(arguments, context)

    return tool.with_call(call)


def _action(parsed: Any) -> Any:
    """The action as the tool itself will read it: a call that was mended on the way must not slip past the question."""
    if isinstance(parsed, Mapping):
        return cast(Mapping[str, Any], parsed).get(DISCRIMINATOR)
    return getattr(parsed, DISCRIMINATOR, None)


def request_for(tool: Tool, consent: Consent, arguments: JsonObject, context: CallContext) -> ConsentRequest:
    """The question about one call, with what the person has to know about it."""
    meant = unwrapped(arguments, tool.input_schema.get("properties", {}))
    shown: JsonObject = jsonable(masked(meant, tool.input_schema))
    return ConsentRequest(
        tool=tool.name,
        principal=context.principal.subject,
        digest=arguments_digest(meant),
        question=_PLACE.sub(lambda place: _told(shown, place), consent.question),
        arguments=_shortened(shown),
        remember_for=None if consent.always else consent.ttl,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """That a person agreed: who, how they were asked, and when (UTC), as far as it is known."""

    by: str | None = None
    how: str | None = None
    at: str | None = None


async def agreed(request: ConsentRequest, approvals: Approvals, context: CallContext) -> Agreement:
    """Return if a person agreed; raise otherwise."""
    decision = await run_in_thread(lambda: approvals.decide(request))
    while decision.code is not None and context.can_ask():
        if await _asked(request, decision.code, approvals, context):
            return Agreement(by=context.principal.subject, how=_how_asked(context))
        # That answer let another call run already: this one needs its own.
        decision = await run_in_thread(lambda: approvals.decide(request))
    _require_approved(decision)
    return Agreement(by=decision.by, how=decision.how, at=decision.at)


async def _asked(request: ConsentRequest, code: str, approvals: Approvals, context: CallContext) -> bool:
    """Ask through the client. True if the person agreed; False if their answer had been used before."""
    # The key holds the digest, so that an answer counts for these arguments and no others, and once.
    key = f"consent-{request.digest[:32]}-{code}"
    answer = await context.ask(question_text(request), ANSWER_SCHEMA, key=key)
    # Only the boolean itself counts: "true", 1 or an answer without the field is no agreement.
    approved = answer.action == "accept" and answer.content.get("approve") is True
    by, how = context.principal.subject, _how_asked(context)
    taken = await run_in_thread(lambda: approvals.answer(request, code=code, approved=approved, by=by, how=how))
    if not approved:
        raise _refusal("cancelled the question" if answer.action == "cancel" else "did not agree")
    return taken


def _how_asked(context: CallContext) -> str:
    """The way of the caller where it names one, else of the protocol's era: calls again, or is asked meanwhile."""
    modern = "io.modelcontextprotocol/protocolVersion" in context.meta
    return getattr(context.caller, "asks_by", None) or ("input_required" if modern else "elicitation")


def _require_approved(decision: ConsentDecision) -> None:
    if decision.state == "approved":
        return
    if decision.state == "refused":
        raise _refusal("refused this call")
    command = decision.command or f"trysquare approve {decision.code}"
    raise ConsentNeeded(
        f"A person has to approve this call first. In their own terminal they run: {command}",
        instruction="Show the person this command and wait for their word; only they can run it. "
        "Then send the same call again.",
        fields={"approval": {"code": decision.code, "command": command, "expires_in": round(decision.expires_in or 0)}},
    )


def _refusal(what: str) -> ConsentRefused:
    return ConsentRefused(
        f"The person {what}, so the tool did not run.",
        instruction="Do not send the call again. Ask the person what they want instead.",
    )


def question_text(request: ConsentRequest) -> str:
    """What the person reads: the question, then the call itself; a long argument by its beginning and length."""
    arguments = _one_line(dump_json(request.arguments), MAX_ARGUMENTS)
    return f"{request.question}\n\nTool: {request.tool}\nArguments: {arguments}\nDigest: {request.digest[:16]}"


def _shortened(shown: JsonObject) -> JsonObject:
    """Arguments of a size that a person can look at; the digest still stands for them whole."""
    if len(dump_json(shown)) <= MAX_ARGUMENTS:
        return shown
    return {name: _one_line(_text(value), MAX_VALUE) for name, value in shown.items()}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dump_json(value)


def _told(shown: JsonObject, place: re.Match[str]) -> str:
    value = shown.get(place[1], place[0])
    return _one_line(_text(value), MAX_VALUE)


def _one_line(text: str, most: int) -> str:
    """A value inside the question, unable to look like a part of it: one line, no control or direction marks."""
    plain = "".join(_visible(letter) for letter in text[: most + 1])
    return plain if len(text) <= most else plain[:most] + f"… ({len(text)} characters)"


def _visible(letter: str) -> str:
    if letter == " " or unicodedata.category(letter)[0] not in "CZ":
        return letter
    return letter.encode("unicode_escape").decode("ascii")
