"""Handlers of `prompts/list`, `prompts/get` and `completion/complete`."""

from __future__ import annotations

from functools import partial

from trysquare.catalog.descriptions import prompt_description
from trysquare.core.call import direct_calls, get_prompt
from trysquare.core.context import Principal
from trysquare.core.errors import InputRequired
from trysquare.core.json import JsonObject
from trysquare.core.prompts import PROMPTS_SCOPE, Complete, Prompt
from trysquare.core.resources import RESOURCES_SCOPE
from trysquare.core.toolset import Toolset
from trysquare.protocol.methods import CompleteParams, GetPromptParams, ListParams
from trysquare.server.caller import McpCaller, Request, bounded, call_context
from trysquare.server.convert import completions_to_wire, messages_to_wire, prompt_to_wire
from trysquare.server.handlers.base import list_page, questions_to_wire
from trysquare.server.options import ServeOptions


class PromptHandlers:
    """Answers what clients ask about prompts, and completes arguments of prompts and resource templates."""

    def __init__(self, toolset: Toolset, options: ServeOptions) -> None:
        self._toolset = toolset
        self._options = options
        self._direct = options.direct or direct_calls(toolset)

    async def list(self, request: Request) -> JsonObject:
        """`prompts/list`."""
        params: ListParams = request.params
        to_wire = partial(prompt_to_wire, describe=prompt_description)
        prompts = self._visible(request.principal)
        return list_page("prompts", prompts, to_wire, key=_name, cursor=params.cursor, size=self._options.page_size)

    async def get(self, request: Request) -> JsonObject:
        """`prompts/get`."""
        params: GetPromptParams = request.params
        caller = McpCaller(request)
        context = call_context(caller, self._options, self._direct)
        try:
            prompt = get_prompt(self._toolset, params.name, request.principal)
            given = params.arguments or {}
            rendering = prompt.render(given, context)
            rendered = await bounded(f"Prompt {prompt.name}", rendering, context, arguments=given)
            return messages_to_wire(prompt, rendered)
        except InputRequired:
            return questions_to_wire(caller)

    async def complete(self, request: Request) -> JsonObject:
        """`completion/complete`: the values that may follow what was typed; none where nobody knows any."""
        params: CompleteParams = request.params
        others = (params.context.arguments if params.context else None) or {}
        complete = self._completer(params, request.principal)
        values = () if complete is None else await complete(params.argument.name, params.argument.value, others)
        return completions_to_wire(values)

    def _completer(self, params: CompleteParams, principal: Principal) -> Complete | None:
        if params.ref.type == "ref/prompt":
            return get_prompt(self._toolset, params.ref.name or "", principal).complete
        templates = self._toolset.templates() if principal.may_use(RESOURCES_SCOPE) else ()
        return next((template.complete for template in templates if template.uri_template == params.ref.uri), None)

    def _visible(self, principal: Principal) -> list[Prompt]:
        return [*self._toolset.prompts()] if principal.may_use(PROMPTS_SCOPE) else []


def _name(prompt: Prompt) -> str:
    return prompt.name
