"""Custom routes: the pages that a server author declares beside the MCP endpoint."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, cast

from pydantic_core import to_json

from trysquare.core.errors import DeclarationError
from trysquare.core.threads import run_in_thread
from trysquare.core.toolset import HttpRoute
from trysquare.server.http.exchange import JSON, AsgiApp, Receive, Scope, Send, send_json, send_response

_TEXT = (b"content-type", b"text/plain; charset=utf-8")
_BYTES = (b"content-type", b"application/octet-stream")


def custom_routes(routes: Iterable[HttpRoute]) -> dict[str, AsgiApp]:
    """The application at each path. Raises `DeclarationError` where a route cannot be served."""
    by_path: defaultdict[str, dict[str, AsgiApp]] = defaultdict(dict)
    for route in routes:
        application = _application(route)
        for method in route.methods:
            by_path[route.path][method] = application
    return {path: _by_method(methods) for path, methods in by_path.items()}


def _by_method(methods: dict[str, AsgiApp]) -> AsgiApp:
    if "GET" in methods:
        methods.setdefault("HEAD", methods["GET"])
    allowed = ", ".join(sorted(methods)).encode()

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        application = methods.get(scope["method"])
        if application is None:
            await send_json(send, 405, {"error": "method_not_allowed"}, [(b"allow", allowed)])
        else:
            await application(scope, receive, send)

    return respond


def _application(route: HttpRoute) -> AsgiApp:
    takes_request = bool(inspect.signature(route.function).parameters)
    make_request = _request_class(route) if takes_request else None
    is_async = inspect.iscoroutinefunction(route.function)

    async def respond(scope: Scope, receive: Receive, send: Send) -> None:
        given = () if make_request is None else (make_request(scope, receive),)
        answer = await route.function(*given) if is_async else await run_in_thread(lambda: route.function(*given))
        await _send(answer, scope, receive, send)

    return respond


def _request_class(route: HttpRoute) -> Any:
    """The class of the function's one parameter, such as Starlette's `Request`; it takes a scope and `receive`."""
    kinds = [parameter.annotation for parameter in inspect.signature(route.function, eval_str=True).parameters.values()]
    if len(kinds) != 1 or not isinstance(kinds[0], type):
        raise DeclarationError(
            f"The function of the route `{route.path}` takes nothing, or one parameter that is annotated with a class "
            "of requests: `from starlette.requests import Request` and `request: Request`."
        )
    return kinds[0]


async def _send(answer: Any, scope: Scope, receive: Receive, send: Send) -> None:
    """Send what a route returned: a response of its own, text, bytes, or a value as JSON."""
    if callable(answer):
        await cast(AsgiApp, answer)(scope, receive, send)
    elif answer is None:
        await send_response(send, 204, [])
    elif isinstance(answer, (str, bytes)):
        is_text = isinstance(answer, str)
        await send_response(send, 200, [_TEXT if is_text else _BYTES], answer.encode() if is_text else answer)
    else:
        await send_response(send, 200, [JSON], to_json(answer))
