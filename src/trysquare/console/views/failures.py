"""The part Failures: why a test fails, as annotated source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import RedirectResponse, Response

from trysquare.core.context import local_principal

if TYPE_CHECKING:
    from trysquare.console.app import Visit


async def show(visit: Visit) -> Response:
    """The form, and what was explained in this session."""
    failures = visit.console.failures.of(visit.session)
    may_run = visit.session.principal == local_principal()
    target = visit.request.query_params.get("target", "")[:2_000]
    return visit.page("failures.html", part="failures", failures=failures, may_run=may_run, target=target)


async def start(visit: Visit) -> Response:
    """Begin to explain a test."""
    failure = visit.console.failures.start(visit.field("target"), visit.session)
    return RedirectResponse(f"/failures/{failure.id}", 303)


async def show_failure(visit: Visit) -> Response:
    """One explanation, as it stands."""
    failure = visit.console.failures.find(visit.request.path_params["failure"], visit.session)
    template = "_failure.html" if visit.is_part else "failure.html"
    return visit.page(template, part="failures", failure=failure)


async def cancel(visit: Visit) -> Response:
    """End an explanation that runs."""
    failure = visit.console.failures.find(visit.request.path_params["failure"], visit.session)
    await visit.console.failures.cancel(failure)
    return RedirectResponse(f"/failures/{failure.id}", 303)


VIEWS = (
    ("GET", "/failures", show),
    ("POST", "/failures", start),
    ("GET", "/failures/{failure}", show_failure),
    ("POST", "/failures/{failure}/cancel", cancel),
)
