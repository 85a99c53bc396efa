"""Call: one request of a caller on its way through a server, with the questions that come back before the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, cast

import msgspec

from trysquare.core.client_requests import Answer as ClientAnswer
from trysquare.core.client_requests import ClientRequest
from trysquare.core.context import CallContext
from trysquare.core.errors import InputRequired, ToolError
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.gateway.answers.answer import Answer
from trysquare.gateway.answers.result_shape import MalformedResult, read_call_result
from trysquare.gateway.upstream import failures, frames
from trysquare.gateway.upstream.channel import Loss, Unreachable
from trysquare.gateway.upstream.connection import Exchange, Lost, Malformed, Refused, ServerRequest
from trysquare.gateway.upstream.frames import NotAFrame, ResultHead, open_result
from trysquare.gateway.upstream.questions import CannotAsk, answer_to_wire, log_from_wire, question_from_wire
from trysquare.gateway.upstream.session import Session

MAX_ROUNDS = 16
"""How often a server may ask back in one call."""
_TIMED_OUT: Final = Loss(reason="The call ran out of time.")
_MAY_ASK: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
_PAUSE_SECONDS = 0.1


class Request(NamedTuple):
    """What is asked of a server."""

    method: str
    about: str
    """The tool, prompt or resource it is about; empty for none."""
    fields: bytes
    """The parameters in JSON, without the brackets around them."""

    @property
    def title(self) -> str:
        """What it is called in an error."""
        return self.about or self.method


class Call:
    """One request of a caller. Left with a question open, it stays under way, and `finish` takes it up again."""

    def __init__(self, session: Session, request: Request) -> None:
        self.session = session
        self.request = request
        self.context: CallContext | None = None
        """Whose call it is."""
        self.notes: list[str] = []
        self._resumption = b""
        self._asked = 0
        self._time_left = session.config.timeout
        self._exchange: Exchange | None = None

    @property
    def exchange(self) -> Exchange:
        """The request under way."""
        assert self._exchange is not None
        return self._exchange

    @property
    def may_ask(self) -> bool:
        """Whether the server may ask something back; a list, for one, is simply there."""
        return self.request.method in _MAY_ASK

    @property
    def is_answered(self) -> bool:
        """Whether the server has answered for now; if that was a question, any session may bring it what it needs."""
        return self.exchange.outcome is not None

    def begin(self, context: CallContext, on_sent: Callable[[], None]) -> None:
        """Send it. Raises `Unreachable` where nothing was sent."""
        self.context = context
        on_sent()
        self._send(context)

    async def finish(self, context: CallContext) -> Answer:
        """Wait for the answer, asking and telling the caller meanwhile.

        A question that the client has to bring the answer to in a call of its own leaves this with `InputRequired`,
        and then the call stays under way. `Unreachable` says that the server never saw the call.
        """
        self.context = context
        while True:
            try:
                await self._settled(context)
            except InputRequired:
                raise
            except BaseException:
                self.abandon()
                raise
            answer = await self._answer()
            if answer is not None:
                return answer
            await self._ask_again(context)

    def abandon(self) -> None:
        """Take it back."""
        self.session.end(self)

    def ask(self, request: ServerRequest) -> None:
        """Have the caller asked."""
        self.exchange.questions.append(request)
        self.exchange.wake()

    def _send(self, context: CallContext) -> None:
        about = self.request.about or None
        self._exchange = self.session.begin(self, self.request.method, self._params(context), about)

    def _params(self, context: CallContext) -> bytes:
        meta = self.session.stamp_for(context)
        if context.meta and ("progress_token" in context.meta or "progressToken" in context.meta):
            token = b'"progressToken":%d' % self.session.connection.next_id
            meta = meta + b"," + token if meta else token
        parts = [self.request.fields, self._resumption, b'"_meta":{%s}' % meta if meta else b""]
        return b"{" + b",".join([part for part in parts if part]) + b"}"

    async def _settled(self, context: CallContext) -> None:
        """Wait for the answer, within the time that this call still has. Time that a person takes does not count."""
        exchange, alarms, loop = self.exchange, self.session.alarms, asyncio.get_running_loop()
        while exchange.outcome is None:
            began, rest = loop.time(), context.remaining()
            seconds = self._time_left if rest is None else min(rest, self._time_left)
            alarms.set(exchange, seconds, partial(exchange.settle, _TIMED_OUT))
            try:
                while not exchange.is_stirred:
                    await exchange.stirring()
            finally:
                alarms.clear(exchange)
                self._time_left -= loop.time() - began
            await self._tell_news(exchange, context)
            if exchange.questions and exchange.outcome is None:
                await self._pass_on(exchange.questions[0], context)
                exchange.questions.popleft()
        # What came with the answer, while the caller was being told what came before.
        await self._tell_news(exchange, context)

    async def _tell_news(self, exchange: Exchange, context: CallContext) -> None:
        if exchange.progress is not None:
            await self._tell_progress(exchange, context)
        while exchange.logs:
            told = log_from_wire(exchange.logs.popleft(), self.session.config.name)
            if told is not None:
                await context.relay_log(*told)

    async def _tell_progress(self, exchange: Exchange, context: CallContext) -> None:
        told, exchange.progress = exchange.progress, None
        if told is not None:
            await context.progress(told.progress, told.total, told.message)

    async def _pass_on(self, request: ServerRequest, context: CallContext) -> None:
        """Put a question of an earlier-era server to the client, and its answer to the server."""
        server = self.session.config.name
        try:
            params = frames.decode_object(request.params)
            question = question_from_wire(request.method, params, server=server, key=f"{server}.{self._asked}")
            answers = await self._asked_meanwhile(question, context)
        except (CannotAsk, NotAFrame, ToolError) as error:
            self.session.connection.refuse(request, frames.METHOD_NOT_FOUND, str(error))
        else:
            if answers is not None:
                self.session.connection.answer(request, answer_to_wire(question, answers[question.key]))
        self._asked += 1

    async def _asked_meanwhile(
        self, question: ClientRequest, context: CallContext
    ) -> Mapping[str, ClientAnswer] | None:
        """What the client answers; None if the server has ended before, since nobody wants to know then."""
        asking = asyncio.ensure_future(context.request(question))
        ending = asyncio.ensure_future(self.exchange.settled())
        try:
            await asyncio.wait({asking, ending}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            asking.cancel()
            ending.cancel()

    async def _answer(self) -> Answer | None:
        """The answer, or None if it is a question of the modern era."""
        config = self.session.config
        if self.exchange.outcome is _TIMED_OUT:
            self.session.suspect(self)
            raise failures.timed_out(config.name, self.request.title, config.timeout)
        self.session.end(self)
        try:
            result = self.exchange.result()
            if self.exchange.flaw and not self.request.method.endswith("/list"):
                # In a list only what is flawed is left out.
                raise Malformed(self.exchange.flaw)
            opened = open_call_result if self.request.method == "tools/call" else open_result
            is_large = len(result) > frames.LARGE
            head, body = await run_in_thread(partial(opened, result)) if is_large else opened(result)
        except Lost as error:
            raise self._lost(error.loss) from None
        except Refused as error:
            raise failures.refused(config.name, self.request.title, error.error) from None
        except NotAFrame as error:
            raise failures.malformed(config.name, self.request.title, str(error)) from None
        if head.result_type == "input_required":
            return None
        return Answer(body=body, is_error=bool(head.is_error), notes=tuple(self.notes))

    def _lost(self, loss: Loss) -> Exception:
        if not loss.was_sent and not self._asked:
            return Unreachable(loss)
        last_words = self.session.connection.channel.last_words()
        return failures.lost(self.session.config.name, loss, last_words=last_words)

    async def _ask_again(self, context: CallContext) -> None:
        """Bring a server of the modern era what it needs, and send the request again with it, as it wants."""
        try:
            asked = frames.decode_object(self.exchange.result())
        except NotAFrame as error:
            raise failures.malformed(self.session.config.name, self.request.title, str(error)) from None
        self._count_round()
        responses = await self._responses(asked.get("inputRequests"), context)
        parts = [b'"inputResponses":' + frames.encode(responses)] if responses else []
        if asked.get("requestState") is not None:
            parts.append(b'"requestState":' + frames.encode(asked["requestState"]))
        self._resumption = b",".join(parts)
        self._asked += 1
        try:
            self._send(context)
        except Unreachable as error:
            raise failures.not_sent(self.session.config.name, error.loss) from None

    async def _responses(self, requests: Any, context: CallContext) -> JsonObject:
        if not isinstance(requests, dict) or not requests:
            # The server only wants to be asked again later.
            await asyncio.sleep(_PAUSE_SECONDS)
            return {}
        wanted = self._questions(cast(Mapping[str, Any], requests))
        answers = await context.request(*wanted.values())
        return {name: answer_to_wire(question, answers[question.key]) for name, question in wanted.items()}

    def _questions(self, requests: Mapping[str, Any]) -> dict[str, ClientRequest]:
        server = self.session.config.name
        try:
            return {
                name: question_from_wire(
                    str(request.get("method")), request.get("params") or {}, server=server, key=self._key(name)
                )
                for name, request in requests.items()
            }
        except (CannotAsk, AttributeError) as error:
            raise failures.unreadable(server, self.request.title, f"it asks for what cannot be had: {error}") from None

    def _key(self, name: str) -> str:
        return f"{self.session.config.name}.{self._asked}.{name}"

    def _count_round(self) -> None:
        if self._asked >= MAX_ROUNDS:
            raise failures.unreadable(self.session.config.name, self.request.title, f"it asked back {MAX_ROUNDS} times")


def open_call_result(result: msgspec.Raw) -> tuple[ResultHead, bytes]:
    """As `open_result`, for the answer to a call of a tool: `NotAFrame` also where it does not have that shape."""
    try:
        head, body = read_call_result(result)
    except MalformedResult as error:
        raise NotAFrame(str(error)) from None
    return ResultHead(is_error=head.isError, result_type=head.resultType), bytes(body).replace(b"\n", b" ")
