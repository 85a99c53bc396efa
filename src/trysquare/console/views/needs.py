"""The part Needs you: what waits for a human, and the decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, RedirectResponse, Response

from trysquare.console.decisions import Question
from trysquare.console.passkeys import require_host, signing_options
from trysquare.core.approvals import SignedStatement
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.store.passkeys import read_answer
from trysquare.store.signatures import InvalidSignature

if TYPE_CHECKING:
    from trysquare.console.app import Visit

SHOWN = 20
"""Questions on one page, newest first."""


async def show(visit: Visit) -> Response:
    """The page, or its list where only that is wanted."""
    return await _respond(visit, "")


async def decide(visit: Visit) -> Response:
    """Decide one question, or several of the same action."""
    said: list[str] = []
    choice, reason = visit.field("choice"), visit.field("reason")
    chosen = [value.rpartition(" ")[::2] for key, value in visit.form if key == "question"]
    decisions = visit.console.decisions
    if len(chosen) > 1 and not await _are_alike(visit, [question for question, _ in chosen]):
        return await _respond(visit, "Nothing was decided: these are not the same action.", status=409)
    status = 200
    for question, digest in chosen:
        try:
            signed, by = _signed(visit), visit.session.principal
            done = await decisions.decide(question, digest, choice, by=by, reason=reason, signed=signed)
        except ToolError as error:
            done, status = error.message, 409
        said.append(done)
    visit.console.live.look_soon()
    if not visit.is_part and status == 200:
        return RedirectResponse("/", 303)
    return await _respond(visit, " ".join(dict.fromkeys(said)), status=status)


async def statement(visit: Visit) -> Response:
    """What approving a question signs, and what the browser is asked for it."""
    page = visit.request.headers["origin"]
    question, _, digest = visit.field("question").rpartition(" ")
    try:
        passkeys = visit.console.workspace.approvers.passkeys(require_host(page))
        text = await visit.console.decisions.statement(question, digest, page)
    except (ToolError, InvalidSignature) as error:
        return JSONResponse({"error": str(error)}, 409)
    if not passkeys:
        return JSONResponse({"error": f"No approver has a passkey for {page}."}, 409)
    return JSONResponse({"text": text, "options": signing_options(text, passkeys)})


def _signed(visit: Visit) -> SignedStatement | None:
    """What was signed with the form. Raises `ToolError` for what is no signature."""
    if not visit.field("answer"):
        return None
    try:
        proof = read_answer(visit.field("answer"))
    except InvalidSignature as error:
        raise ToolError(
            f"Not approved: {error}.", code=ErrorCode.CONSENT_REQUIRED, instruction="Sign it once more."
        ) from None
    return SignedStatement(text=visit.field("statement").replace("\r\n", "\n"), signature=proof.to_text())


async def badge(visit: Visit) -> Response:
    """The number beside the part's name, and the title of the page."""
    await visit.console.count_waiting()
    return visit.page("_badge.html", part="needs")


async def _are_alike(visit: Visit, questions: list[str]) -> bool:
    waiting = {each.id: each for each in await visit.console.decisions.waiting()}
    actions = {waiting[each].action if each in waiting else "" for each in questions}
    return len(actions) == 1 and actions != {""}


async def _respond(visit: Visit, said: str, *, status: int = 200) -> Response:
    waiting = await visit.console.decisions.waiting()
    visit.console.waiting_count = len(waiting)
    shown = await visit.console.decisions.detailed(waiting[:SHOWN])
    template = "_needs.html" if visit.is_part else "needs.html"
    # htmx shows only what was answered with success; the text says what was not.
    shown_status = 200 if visit.is_part else status
    return visit.page(
        template, part="needs", status=shown_status, questions=shown, more=max(0, len(waiting) - SHOWN),
        alike=_alike(shown), said=said, can_sign=_can_sign(visit),
    )  # fmt: skip


def _can_sign(visit: Visit) -> bool:
    """Whether an approver has a passkey for this page."""
    try:
        return bool(visit.console.workspace.approvers.passkeys(visit.request.url.hostname))
    except InvalidSignature:
        return False


def _alike(questions: list[Question]) -> list[list[Question]]:
    """The groups of questions about the same action."""
    groups: dict[str, list[Question]] = {}
    for question in questions:
        if question.action:
            groups.setdefault(question.action, []).append(question)
    return [group for group in groups.values() if len(group) > 1]


VIEWS = (("GET", "/", show), ("POST", "/needs/decide", decide), ("POST", "/needs/statement", statement),
         ("GET", "/needs/badge", badge))  # fmt: skip
