"""The console as an ASGI application: routes, and what every request passes first."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from trysquare.app import App
from trysquare.console.assets import static_files
from trysquare.console.decisions import Decisions, QuestionSource
from trysquare.console.failures import Failures
from trysquare.console.live import Live, Topic
from trysquare.console.passkeys import Registration
from trysquare.console.rendering import Renderer
from trysquare.console.requests import cookie_name, is_own_page, needs_tls, read_form, target_of
from trysquare.console.resuming import ResumedJobs
from trysquare.console.sessions import Session, Sessions
from trysquare.console.sources import ConsentQuestions, HeldDefinitions, HeldServers, JobQuestions
from trysquare.console.trials import Trials
from trysquare.console.workspace import Workspace
from trysquare.core.errors import NotFound, ToolError, TrysquareError
from trysquare.core.toolset import Toolset
from trysquare.providers import Origins
from trysquare.server import ServeOptions
from trysquare.server.http.exchange import Receive, Scope, Send
from trysquare.store.signatures import InvalidSignature
from trysquare.store.watchers import Revision

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    # Not `no-referrer`: with it, browsers send the forms of our own pages without an origin.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
Handler: TypeAlias = Callable[["Visit"], Awaitable[Response]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Visit:
    """One request of somebody who is signed in."""

    console: Console
    request: Request
    session: Session
    form: tuple[tuple[str, str], ...] = ()
    """What was sent with a POST, in its order."""

    @property
    def is_part(self) -> bool:
        """Whether only a part of a page is wanted, to put into an open one."""
        return "hx-request" in self.request.headers

    def field(self, name: str) -> str:
        """A field of the form; empty where it was not sent."""
        return next((value for key, value in self.form if key == name), "")

    def page(self, template: str, *, part: str, status: int = 200, **values: Any) -> Response:
        """A page, or a part of one."""
        known = {"session": self.session, "part": part, "count": self.console.waiting_count, "said": ""}
        return self.console.renderer.respond(self.request, template, {**known, **values}, status=status)


class Console:
    """The pages of one app."""

    def __init__(self, workspace: Workspace, sessions: Sessions, registration: Registration | None = None) -> None:
        self.workspace = workspace
        self.sessions = sessions
        self.registration = registration
        self.renderer = Renderer(project=workspace.project.resolve().name or str(workspace.project))
        self.decisions = Decisions(_sources(workspace))
        self.waiting_count = 0
        self.live = Live(_topics(self, workspace), [path.parent for path in workspace.state_files])
        self.failures = Failures(workspace.project, self.live.announce)
        self.resumed = ResumedJobs(workspace.project, self.live.announce)
        self.trials = Trials(workspace.toolset, workspace.options, self.live.announce)
        self._app = Starlette(routes=[*self._routes(), *static_files()], exception_handlers={404: self._not_found})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                known = {name for name, _ in message["headers"]}
                added = {**_HEADERS, "cache-control": "no-store"}
                more = [(key.encode(), value.encode()) for key, value in added.items() if key.encode() not in known]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self._app(scope, receive, send_guarded)

    def close(self) -> None:
        """End all streams."""
        self.live.close()

    async def count_waiting(self) -> int:
        """How many questions wait, counted anew."""
        self.waiting_count = len(await self.decisions.waiting())
        return self.waiting_count

    def _routes(self) -> list[Route]:
        from trysquare.console.views import bots, calls, failures, jobs, needs, servers, tools

        own = [
            Route("/sign-in", self._sign_in, methods=["GET", "POST"]),
            Route("/sign-out", self._guarded(_sign_out, "POST"), methods=["POST"]),
            Route("/passkey", self._register, methods=["GET", "POST"]),
            Route("/live", self._guarded(_stream, "GET"), methods=["GET"]),
        ]
        views: Sequence[tuple[str, str, Handler]] = (
            *needs.VIEWS,
            *tools.VIEWS,
            *servers.VIEWS,
            *calls.VIEWS,
            *bots.VIEWS,
            *jobs.VIEWS,
            *failures.VIEWS,
        )
        return [*own, *(Route(path, self._guarded(view, method), methods=[method]) for method, path, view in views)]

    def _guarded(self, handler: Handler, method: str) -> Callable[[Request], Awaitable[Response]]:
        """The handler behind a session; a POST also proves that one of our own pages sent it."""

        async def respond(request: Request) -> Response:
            session = self.sessions.find(request.cookies.get(cookie_name(request), ""))
            if session is None:
                return _to_sign_in(request)
            form: tuple[tuple[str, str], ...] = ()
            if method == "POST":
                try:
                    form = await read_form(request)
                except ValueError as error:
                    return PlainTextResponse(str(error), 413)
                given = next((value for key, value in form if key == "csrf"), request.headers.get("x-csrf-token", ""))
                if not is_own_page(request) or not _equal(given, session.csrf):
                    return PlainTextResponse("This request did not come from a page of this console.", 403)
            visit = Visit(console=self, request=request, session=session, form=form)
            try:
                return await handler(visit)
            except TrysquareError as error:
                return visit.page("error.html", part="", status=400, error=error)

        return respond

    async def _not_found(self, request: Request, error: Exception) -> Response:
        async def missing(visit: Visit) -> Response:
            problem = NotFound("There is no such page.", instruction="Choose a part of the console.")
            return visit.page("error.html", part="", status=404, error=problem)

        return await self._guarded(missing, "GET")(request)

    async def _sign_in(self, request: Request) -> Response:
        if request.method == "POST":
            form = dict(await read_form(request))
            # There is no session yet, so the origin alone says whose form it was.
            cookie = await self.sessions.redeem_token(form.get("token", "").strip()) if is_own_page(request) else None
        else:
            cookie = self.sessions.redeem(request.query_params.get("key", ""))
        if cookie is not None:
            response = RedirectResponse(target_of(request), 303)
            response.set_cookie(
                cookie_name(request), cookie, httponly=True, samesite="strict", path="/", secure=needs_tls(request)
            )
            return response
        tried = request.method == "POST" or "key" in request.query_params
        values = {"tried": tried, "takes_token": self.sessions.verifier is not None, "has_link": self.sessions.link}
        return self.renderer.respond(request, "sign_in.html", values, status=403 if tried else 401)

    async def _register(self, request: Request) -> Response:
        """Register the passkey of an approver. The link of the terminal says for whom; nobody is signed in by it."""
        registration, form, error = self.registration, dict[str, str](), ""
        if request.method == "POST" and is_own_page(request):
            form = dict(await read_form(request))
        key = form.get("key", request.query_params.get("key", ""))
        if registration is None or not registration.holds(key):
            return self.renderer.respond(request, "passkey.html", {"registration": None}, status=403)
        page = f"{request.url.scheme}://{request.headers.get('host', '')}"
        values: dict[str, Any] = {"registration": registration, "key": key, "passkey": None, "options": None}
        try:
            if form:
                page = request.headers["origin"]
                values["passkey"] = registration.register(page, form.get("credential", ""))
            else:
                values["options"] = registration.options(page)
        except (ToolError, InvalidSignature) as problem:
            error = problem.message if isinstance(problem, ToolError) else str(problem)
        return self.renderer.respond(request, "passkey.html", {**values, "error": error}, status=400 if error else 200)


async def _stream(visit: Visit) -> Response:
    headers = {"x-accel-buffering": "no", "cache-control": "no-store"}
    return StreamingResponse(visit.console.live.events(), media_type="text/event-stream", headers=headers)


async def _sign_out(visit: Visit) -> Response:
    name = cookie_name(visit.request)
    visit.console.sessions.end(visit.request.cookies.get(name, ""))
    response = RedirectResponse("/sign-in", 303)
    response.delete_cookie(name, path="/", httponly=True, samesite="strict")
    return response


def _equal(given: str, known: str) -> bool:
    import hmac

    return hmac.compare_digest(given.encode("utf-8", "replace"), known.encode())


def _to_sign_in(request: Request) -> Response:
    if "hx-request" in request.headers:
        return Response(status_code=401, headers={"hx-redirect": "/sign-in"})
    if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
        return RedirectResponse("/sign-in", 303)
    return PlainTextResponse("Sign in first.", 401)


def _sources(workspace: Workspace) -> list[QuestionSource]:
    calls = ConsentQuestions(workspace.approvals, lambda: workspace.bots)
    sources: list[QuestionSource] = [calls, JobQuestions(workspace.jobs)]
    if workspace.gateway is not None:
        servers, pins, opened = workspace.gateway, workspace.launch_pins, workspace.opened
        sources += [HeldServers(servers, pins, opened), HeldDefinitions(servers, pins, opened)]
    return sources


def _changed(path: Path) -> int:
    """When a file was written last; 0 while there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _topics(console: Console, workspace: Workspace) -> list[Topic]:
    states = [Revision(path) for path in workspace.state_files]
    jobs = [Revision(path) for path in [workspace.jobs_file] if path is not None]

    async def waiting() -> tuple[str, ...]:
        questions = await console.decisions.waiting()
        console.waiting_count = len(questions)
        return tuple(f"{each.id} {each.digest}" for each in questions)

    ledger, gateway = Revision(workspace.ledger_file), workspace.gateway

    def states_of_servers() -> Hashable:
        if gateway is None:
            return ()
        return tuple((name, each.state, each.failures, each.lost) for name, each in gateway.pool.status().items())

    def entries() -> Hashable:
        """The servers as they are configured now: a change of one may wait for a human."""
        return () if gateway is None else tuple(map(id, gateway.entries.values()))

    def bots() -> Hashable:
        """What their pages show: the runs, a state file that git or a person changed, and the definitions."""
        if not workspace.bots:
            return ()
        from trysquare.bots.workflow.sync import NAME

        own = tuple((_changed(each.project().root / NAME), id(each.definition)) for each in workspace.bots)
        return (own, *(each.read() for each in states))

    return [
        Topic(name="bots", glance=bots),
        Topic(name="ledger", glance=ledger.read),
        Topic(name="servers", glance=lambda: (states_of_servers(), *(each.read() for each in states))),
        Topic(name="needs", glance=lambda: (entries(), *(each.read() for each in (*states, *jobs))), look=waiting),
        Topic(name="state", glance=lambda: tuple(each.read() for each in states)),
        Topic(name="jobs", glance=lambda: tuple(each.read() for each in jobs)),
    ]


@asynccontextmanager
async def open_console(
    app: App,
    origins: Origins,
    sessions: Sessions,
    *,
    toolset: Toolset,
    options: ServeOptions,
    registration: Registration | None = None,
) -> AsyncGenerator[Console]:
    """Lifespan of the console of an app, whose clients are served `toolset` with these options."""
    async with AsyncExitStack() as stack:
        console = Console(Workspace(app, origins, stack, toolset=toolset, options=options), sessions, registration)
        stack.push_async_callback(console.trials.close)
        stack.push_async_callback(console.failures.close)
        stack.push_async_callback(console.resumed.close)
        stack.callback(console.close)
        yield console
