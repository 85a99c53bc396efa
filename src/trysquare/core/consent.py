"""Consent of a human to one call: the check, and the warning in descriptions.

A tool with `Consent` in its metadata runs only after a human agreed to this very call. They are asked through the
client where it supports elicitation. Where it does not, and approvals are stored, the call fails with a code, and runs
once after a human approved that code in their own terminal. Otherwise it fails, with an instruction what to set up.
Nothing in the arguments or in the `_meta` of a call counts as agreement, and every way to the tool fails closed.
"""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Final, Protocol, cast, runtime_checkable

from trysquare.core.approvals import (
    Approvals,
    ConsentDecision,
    ConsentGrant,
    ConsentProof,
    ConsentRequest,
    MemoryApprovals,
    SignedApprovals,
    WatchedApprovals,
    arguments_digest,
)
from trysquare.core.arguments import DISCRIMINATOR
from trysquare.core.context import Call, CallContext, ElicitRequest
from trysquare.core.errors import ConsentNeeded, ConsentRefused, DeclarationError, InputRequired
from trysquare.core.json import JsonObject
from trysquare.core.metadata import Consent, ToolMetadata
from trysquare.core.redaction import redact
from trysquare.core.result import Result, dump_json, jsonable
from trysquare.core.schema.errors import unwrap_arguments
from trysquare.core.signature import Arguments, argument_names
from trysquare.core.text import closest_names
from trysquare.core.threads import run_in_thread
from trysquare.core.untrusted import one_line
from trysquare.core.waiting import PagedQuestion

CONSENT_MARK = "REQUIRES EXPLICIT USER INSTRUCTION"


def consent_warning(metadata: ToolMetadata) -> str | None:
    """The warning in the description of a tool that needs consent, else None."""
    if metadata.consent is None and metadata.consent_literal is None:
        return None
    actions = metadata.consent.actions if metadata.consent is not None else ()
    called = f"use {', '.join(sorted(actions))}" if actions else "call this"
    sentences = [f"{CONSENT_MARK}: {called} only when the user has asked for it, never on your own or to try it."]
    if metadata.consent is not None:
        sentences.append("The user is asked before it runs, and only they can agree.")
    if metadata.consent_literal is not None:
        sentences.append(f'Send the text "{metadata.consent_literal}" only with their consent.')
    return " ".join(sentences)


MAX_VALUE = 200
"""Characters of an argument inside the question's own sentence; the whole value follows below."""
MAX_QUESTION = 64 * 1024
"""Bytes of a question that a client is asked to show. A terminal shows more."""
MAX_REASON = 2_000
"""Characters of a human's reason."""
MAX_SHOWN = 1024 * 1024
"""Bytes of arguments that are stored for a terminal."""
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{(\w+)\}")
"""An argument in the question, or a brace that is written twice to stand for itself."""
_UNSTORED: Final = MemoryApprovals()

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


@runtime_checkable
class ContinuedCaller(Protocol):
    """A caller whose client calls again with its answers, and carries the tickets of those that were used."""

    def continue_with(self, used: str, fresh: str) -> None:
        """Replace a used ticket by a fresh one in the state that the client sends with its next try."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckedCall:
    """The call of a tool that asks for consent; `origin` identifies the tool whatever its name."""

    call: Call
    consent: Consent
    origin: object


def checked_call(
    name: str, kind: Arguments, consent: Consent, inner: Call, before: CheckedCall | None = None
) -> CheckedCall:
    """The call behind a question to a human. `before` is the check of the tool that this one was made from.

    A call that replaced a checked one may or may not lead there. So it is checked itself, and passes a proof with
    which the same call of the same tool does not ask a second time.
    """
    origin = object() if before is None else before.origin

    async def call(arguments: JsonObject, context: CallContext) -> Result[Any]:
        # A copy, so that what runs is what the human saw, whatever becomes of the caller's own object meanwhile.
        given = copy.deepcopy(arguments)
        # Parsed first: nobody should be asked about a call that cannot run.
        parsed = kind.parse(name, given)
        if consent.actions and _action(parsed) not in consent.actions:
            return await inner(given, context)
        request = consent_request(name, kind, consent, given, context)
        proof, agreement = context.consent_proof, None
        if proof is None or not proof.use(origin, request.digest):
            agreement = await obtain_consent(request, context.approvals, context)
        if before is not None:
            context = replace(context, consent_proof=ConsentProof(origin=origin, digest=request.digest))
        try:
            return await inner(given, context)
        except InputRequired:
            _continue(agreement, context)
            raise

    return CheckedCall(call=call, consent=consent, origin=origin)


def _action(parsed: Any) -> Any:
    """The action as the tool itself will read it: a repaired call must not slip past the question."""
    if isinstance(parsed, Mapping):
        return cast(Mapping[str, Any], parsed).get(DISCRIMINATOR)
    return getattr(parsed, DISCRIMINATOR, None)


def consent_request(
    name: str, kind: Arguments, consent: Consent, arguments: JsonObject, context: CallContext
) -> ConsentRequest:
    """The question about one call, with what a human needs to decide."""
    meant = unwrap_arguments(arguments, kind.wire.get("properties", {}))
    shown: JsonObject = jsonable(redact(meant, kind.wire))
    return ConsentRequest(
        tool=name,
        principal=context.principal.subject,
        digest=arguments_digest(meant),
        question=_PLACEHOLDER.sub(lambda found: _fill_in(shown, found), consent.question),
        arguments=shown,
        remember_for=None if consent.always else consent.ttl,
        client=context.client,
        job=context.job,
    )


async def obtain_consent(request: ConsentRequest, approvals: Approvals | None, context: CallContext) -> ConsentGrant:
    """Return if a human agreed; raise otherwise. Without `approvals` only a client that can ask can bring an answer."""
    store = approvals or _UNSTORED
    text = question_text(request)
    size = len(text.encode("utf-8", "surrogatepass"))
    signs = isinstance(store, SignedApprovals) and store.needs_signature(request)
    asks = context.can_ask() and size <= MAX_QUESTION and not signs
    if not asks and size > MAX_SHOWN:
        raise ConsentNeeded(
            f"`{request.tool}` runs only after a human has seen its whole arguments, and these have {size} bytes; "
            f"{MAX_SHOWN} is the limit.",
            instruction="Send less in one call.",
        )
    began = time.monotonic()
    decision = await run_in_thread(lambda: store.decide(request, open_code=not asks))
    if decision.state == "waiting" and isinstance(store, WatchedApprovals):
        paged = PagedQuestion(request, store, decision, began)
        if not asks:
            await paged.wait(context)
        elif (granted := await paged.first_answer(_ask(request, text, store, context))) is not None:
            return granted
        decision = paged.settled or await run_in_thread(lambda: store.decide(request, open_code=not asks))
    elif decision.state == "waiting" and asks:
        return await _ask(request, text, store, context)
    if signs and decision.state == "waiting":
        raise _unsigned(decision)
    _require_approved(decision, request, size)
    return ConsentGrant(by=decision.by, how=decision.how, at=decision.at, digest=request.digest, signed=decision.signed)


async def _ask(request: ConsentRequest, text: str, store: Approvals, context: CallContext) -> ConsentGrant:
    """Ask through the client, until an answer comes that no call has used yet."""
    by, how = context.principal.subject, getattr(context.caller, "asks_by", "elicitation")
    # The key stands for the tool and its arguments, and the question is exact: an answer counts for this call alone.
    visible = getattr(context.caller, "visible", None)
    shown = text if visible is None else visible(text)
    key = "consent-" + arguments_digest({"tool": request.tool, "arguments": request.digest})[:32]
    for attempt in count():
        own_key = f"{key}-{attempt}" if attempt else key
        question = ElicitRequest(message=shown, schema=ANSWER_SCHEMA, key=own_key, exact=True, ticket=store.ticket())
        answer = await context.caller.ask(question)
        ticket = cast(str, answer.ticket or question.ticket)
        # Only the boolean itself counts: "true", 1 or an answer without the field is not consent.
        approved = answer.action == "accept" and answer.content.get("approve") is True
        answering = partial(store.answer, request, ticket=ticket, approved=approved, by=by, how=how)
        taken = await run_in_thread(answering)
        if not approved:
            raise _refusal("cancelled the question" if answer.action == "cancel" else "did not agree")
        if taken:
            return ConsentGrant(by=by, how=how, ticket=ticket, digest=request.digest)
    raise AssertionError("a question is answered or ends the call")


def _continue(agreement: ConsentGrant | None, context: CallContext) -> None:
    """The tool asks something itself, and its client calls again: that is still the call that was agreed to.

    The used ticket stays used. Only the state that the client gets now has the one with which the call goes on, once.
    """
    if agreement is None or agreement.ticket is None or not isinstance(context.caller, ContinuedCaller):
        return
    store = context.approvals or _UNSTORED
    context.caller.continue_with(agreement.ticket, store.ticket(continued=True))


def _unsigned(decision: ConsentDecision) -> ConsentNeeded:
    """The error of a call that only an approver's signature lets run."""
    command = decision.command or f"trysquare approve {decision.code} --sign KEY"
    why = f" {decision.reason}" if decision.reason else ""
    shown = {
        "code": decision.code,
        "command": command,
        "expires_in": round(decision.expires_in or 0),
        "signature": True,
    }
    return ConsentNeeded(
        f"An approver of this project has to sign this call first; a plain yes is not enough.{why} "
        f"In their own terminal they run: {command}",
        instruction="Show the user this command and wait; only an approver can sign. Then send the same call again.",
        fields={"approval": shown},
    )


def _require_approved(decision: ConsentDecision, request: ConsentRequest, size: int) -> None:
    if decision.state == "approved":
        return
    if decision.state == "refused":
        raise _refusal("refused this call", decision.reason)
    if decision.state == "expired":
        raise _refusal("did not answer in time")
    if decision.code is None:
        raise _cannot_ask(request, size)
    command = decision.command or f"trysquare approve {decision.code}"
    why = f" The question has {size} bytes, more than a client is asked to show." if size > MAX_QUESTION else ""
    raise ConsentNeeded(
        f"A human has to approve this call first.{why} In their own terminal they run: {command}",
        instruction="Show the user this command and wait; only they can run it. Then send the same call again.",
        fields={"approval": {"code": decision.code, "command": command, "expires_in": round(decision.expires_in or 0)}},
    )


def _cannot_ask(request: ConsentRequest, size: int) -> ConsentNeeded:
    why = "this client cannot ask (it has no elicitation), and no approvals are stored"
    if size > MAX_QUESTION:
        why = f"the question has {size} bytes, more than a client is asked to show, and no approvals are stored"
    return ConsentNeeded(
        f"`{request.tool}` runs only after a human approved the call, and nobody can be asked here: {why}.",
        instruction="Do not send the call again. Tell the user what to set up: a client that supports elicitation, or "
        "`trysquare serve`, which stores approvals for `trysquare approve`; in Python `approvals=` of the server's "
        "options or of the call's context.",
    )


def _refusal(what: str, reason: str = "") -> ConsentRefused:
    why = f" Their reason: {one_line(reason, MAX_REASON)}" if reason else ""
    return ConsentRefused(
        f"The user {what}, so the tool did not run.{why}",
        instruction="Do not send the call again. Ask the user what they want instead.",
    )


def question_text(request: ConsentRequest) -> str:
    """What a human reads: the question, then the call itself, whole."""
    arguments = visible(dump_json(request.arguments))
    return f"{request.question}\n\nTool: {request.tool}\nArguments: {arguments}\nDigest: {request.digest[:16]}"


def refuse_unknown_names(consent: Consent, tool: str, arguments: Arguments) -> None:
    """Refuse a question that names an argument which the tool does not have: nobody would see what it is about."""
    named = [name for name in _PLACEHOLDER.findall(consent.question) if name]
    known = argument_names(arguments) if named else None
    if known is None:
        return
    for name in named:
        if name not in known:
            near = closest_names(name, known)
            hint = f"Did you mean `{{{near[0]}}}`?" if near else f"Its arguments: {', '.join(known) or 'none'}."
            raise DeclarationError(
                f"The consent question of `{tool}` names `{{{name}}}`, which is not an argument. {hint} "
                "To show braces, write them twice."
            )


def _fill_in(shown: JsonObject, placeholder: re.Match[str]) -> str:
    if placeholder[1] is None:
        return placeholder[0][0]
    value = shown.get(placeholder[1], placeholder[0])
    text = value if isinstance(value, str) else dump_json(value)
    plain = visible(text[: MAX_VALUE + 1])
    return plain if len(text) <= MAX_VALUE else plain[:MAX_VALUE] + f"… ({len(text)} characters, whole below)"


def visible(text: str) -> str:
    """A value inside the question, unable to look like a part of it: one line, no control or direction marks."""
    return one_line(text, len(text))
