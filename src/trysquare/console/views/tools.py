"""The part Tools: what there is, what it costs, what is wrong with it, and a form to try it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from trysquare.catalog.descriptions import compact_description
from trysquare.catalog.lint.base import Finding
from trysquare.console.forms import edited, form_fields, read_form
from trysquare.core.call import get_resource, get_tool, guard_crash
from trysquare.core.context import CallContext
from trysquare.core.errors import InvalidArguments, NotFound
from trysquare.core.json import JsonObject, as_object
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.server.convert import messages_to_wire, reading_to_wire

if TYPE_CHECKING:
    from trysquare.console.app import Visit

_MOST = 300
"""Tools on one page; the filter finds the others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRow:
    """One tool of the list."""

    tool: Tool
    summary: str
    tokens: int
    part: float
    """Its tokens as a part of the largest, in percent."""
    findings: tuple[Finding, ...]


async def show(visit: Visit) -> Response:
    """The tools, prompts and resources."""
    toolset, wanted = visit.console.workspace.toolset, visit.request.query_params.get("q", "").strip()
    rows = await run_in_thread(lambda: _rows(visit, wanted.lower()))
    shown: dict[str, Any] = {
        "rows": rows[:_MOST], "more": max(0, len(rows) - _MOST), "wanted": wanted,
        "tokens": sum(row.tokens for row in rows), "prompts": toolset.prompts(),
        "resources": toolset.resources(), "templates": toolset.templates(),
    }  # fmt: skip
    return visit.page("_tool_rows.html" if visit.is_part else "tools.html", part="tools", **shown)


async def show_tool(visit: Visit) -> Response:
    """One tool with its form."""
    tool = get_tool(visit.console.workspace.toolset, visit.request.path_params["name"], visit.session.principal)
    values = _prefilled(visit.request.query_params.get("arguments", ""))
    findings = await run_in_thread(lambda: [each for each in _findings(visit) if each.tool == tool.name])
    return visit.page(
        "tool.html", part="tools", tool=tool, description=compact_description(tool), findings=findings,
        fields=form_fields(tool.input_schema, values), raw=values, trial=None,
    )  # fmt: skip


async def call(visit: Visit) -> Response:
    """Call a tool with what was filled in, or with arguments in JSON."""
    name = visit.request.path_params["name"]
    tool = get_tool(visit.console.workspace.toolset, name, visit.session.principal)
    raw = visit.field("json").strip()
    given = dict(visit.form)
    arguments = _object(raw) if raw else read_form(form_fields(tool.input_schema, given=given), given)
    trial = await visit.console.trials.start(tool.name, arguments, visit.session)
    return visit.page("_trial.html" if visit.is_part else "trial.html", part="tools", trial=trial, tool=tool)


async def edit_form(visit: Visit) -> Response:
    """The form as it was filled, with a row more or less, or with the fields of another shape."""
    tool = get_tool(visit.console.workspace.toolset, visit.request.path_params["name"], visit.session.principal)
    given = dict(visit.form)
    fields = form_fields(tool.input_schema, given=given)
    given = edited(fields, given, add=visit.field("add"), remove=visit.field("remove"))
    return visit.page("_form.html", part="tools", fields=form_fields(tool.input_schema, given=given))


async def show_trial(visit: Visit) -> Response:
    """A call that was made from the page, as it stands."""
    trial = visit.console.trials.find(visit.request.path_params["trial"], visit.session)
    return visit.page("_trial.html" if visit.is_part else "trial.html", part="tools", trial=trial)


async def cancel(visit: Visit) -> Response:
    """Cancel a call."""
    trial = visit.console.trials.find(visit.request.path_params["trial"], visit.session)
    await visit.console.trials.cancel(trial)
    return visit.page("_trial.html" if visit.is_part else "trial.html", part="tools", trial=trial)


async def show_prompt(visit: Visit) -> Response:
    """A prompt with the form of its arguments."""
    return visit.page("prompt.html", part="tools", prompt=_prompt(visit), rendered=None, given={})


async def render_prompt(visit: Visit) -> Response:
    """A prompt as a client gets it."""
    prompt = _prompt(visit)
    given = {key.removeprefix("arg/"): value for key, value in visit.form if key.startswith("arg/") and value}
    context = CallContext(principal=visit.session.principal)
    messages = await guard_crash(f"Prompt {prompt.name}", prompt.render(given, context), arguments=given)
    rendered = messages_to_wire(prompt, messages)
    return visit.page("prompt.html", part="tools", prompt=prompt, rendered=rendered, given=given)


async def read_resource(visit: Visit) -> Response:
    """A resource as a client gets it."""
    uri, context = visit.request.query_params.get("uri", ""), CallContext(principal=visit.session.principal)
    resource = get_resource(visit.console.workspace.toolset, uri, visit.session.principal)
    contents = await guard_crash(f"Resource {uri[:80]}", resource.read(uri, {}, context))
    return visit.page("resource.html", part="tools", uri=uri, contents=reading_to_wire(contents)["contents"])


def _prompt(visit: Visit) -> Any:
    prompt = visit.console.workspace.toolset.find_prompt(visit.request.path_params["name"])
    if prompt is None:
        raise NotFound("There is no such prompt.", instruction="Choose one of the list.")
    return prompt


def _rows(visit: Visit, wanted: str) -> list[ToolRow]:
    from trysquare.catalog.descriptions import definition_tokens

    principal = visit.session.principal
    usable = [each for each in visit.console.workspace.toolset.tools() if principal.may_use(each.metadata.toolset)]
    tools = [each for each in usable if wanted in f"{each.name} {each.description}".lower()]
    costs = [definition_tokens(tool) for tool in tools]
    most = max(costs, default=1) or 1
    by_tool: dict[str, list[Finding]] = {}
    for finding in _findings(visit):
        by_tool.setdefault(finding.tool, []).append(finding)
    return [
        ToolRow(
            tool=tool, summary=_first_line(tool), tokens=cost, part=round(100 * cost / most, 1),
            findings=tuple(by_tool.get(tool.name, ())),
        )
        for tool, cost in zip(tools, costs, strict=True)
    ]  # fmt: skip


def _findings(visit: Visit) -> Iterable[Finding]:
    return visit.console.workspace.findings()


def _first_line(tool: Tool) -> str:
    return next(iter(tool.description.strip().splitlines()), "")


def _prefilled(text: str) -> JsonObject:
    try:
        return as_object(json.loads(text)) if text else {}
    except ValueError:
        return {}


def _object(text: str) -> JsonObject:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidArguments(f"The arguments are not valid JSON: {error}", instruction="Correct them.") from None
    if not isinstance(found, dict):
        raise InvalidArguments("The arguments must be a JSON object.", instruction="Write them as {…}.")
    return as_object(found)


VIEWS = (
    ("GET", "/tools", show),
    ("GET", "/tools/{name:path}", show_tool),
    ("POST", "/call/{name:path}", call),
    ("POST", "/form/{name:path}", edit_form),
    ("GET", "/trials/{trial}", show_trial),
    ("POST", "/trials/{trial}/cancel", cancel),
    ("GET", "/prompts/{name:path}", show_prompt),
    ("POST", "/prompts/{name:path}", render_prompt),
    ("GET", "/resources", read_resource),
)
