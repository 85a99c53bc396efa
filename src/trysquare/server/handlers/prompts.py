"""Prompts/*, completion/complete."""

from __future__ import annotations

from functools import partial

import mcp_types as types

from trysquare.catalog.descriptions import prompt_description
from trysquare.core.call import direct_calls
from trysquare.core.errors import ErrorCode, InputRequired, NotFound
from trysquare.core.json import JsonObject
from trysquare.core.prompts import Complete, Prompt
from trysquare.core.text import closest_names
from trysquare.core.toolset import Toolset
from trysquare.server.caller import McpCaller, bounded, call_context, principal_of
from trysquare.server.convert import completions_to_wire, messages_to_wire, prompt_to_wire
from trysquare.server.handlers.base import list_page, questions_to_wire
from trysquare.server.handlers.resources import RESOURCES_SCOPE
from trysquare.server.options import ServeOptions
from trysquare.server.protocol import Request

PROMPTS_SCOPE = "prompts"
"""The scope that a scoped token needs for prompts, which belong to no toolset."""


class PromptHandlers:
    """Answers what clients ask about prompts."""

    def __init__(self, toolset: Toolset, options: ServeOptions) -> None:
        self._toolset = toolset
        self._options = options
        self._direct = options.direct or direct_calls(toolset)

    async def list(self, request: Request, params: types.PaginatedRequestParams) -> JsonObject:
        """`prompts/list`."""
        to_wire = partial(prompt_to_wire, describe=prompt_description)
        return list_page("prompts", self._visible(), to_wire, key=_name, cursor=params.cursor, options=self._options)

    async def get(self, request: Request, params: types.GetPromptRequestParams) -> JsonObject:
        """`prompts/get`."""
        caller = McpCaller(request)
        context = call_context(caller, self._options, self._direct)
        try:
            prompt = self.find(params.name)
            given = dict(params.arguments or {})
            rendering = prompt.render(given, context)
            rendered = await bounded(f"Prompt {prompt.name}", rendering, context, arguments=given)
            return messages_to_wire(prompt, rendered)
        except InputRequired:
            return questions_to_wire(caller)

    def find(self, name: str) -> Prompt:
        """The prompt of that name, or an error that names the nearest ones."""
        prompt = self._toolset.find_prompt(name)
        if prompt is not None and principal_of(self._options).may_use(PROMPTS_SCOPE):
            return prompt
        close = closest_names(name, (known.name for known in self._visible()), count=3)
        hint = f" The nearest are {', '.join(f'`{near}`' for near in close)}." if close else ""
        raise NotFound(f"There is no prompt `{name[:80]}`.{hint}", code=ErrorCode.PROMPT_NOT_FOUND)

    def _visible(self) -> list[Prompt]:
        return list(self._toolset.prompts()) if principal_of(self._options).may_use(PROMPTS_SCOPE) else []


def _name(prompt: Prompt) -> str:
    return prompt.name


class CompletionHandlers:
    """Answers `completion/complete`."""

    def __init__(self, toolset: Toolset, options: ServeOptions, prompts: PromptHandlers) -> None:
        self._toolset = toolset
        self._options = options
        self._prompts = prompts

    async def complete(self, request: Request, params: types.CompleteRequestParams) -> JsonObject:
        """The values that may follow what was typed; none where nobody knows any."""
        others = dict((params.context.arguments if params.context else None) or {})
        complete = self._completer(params.ref)
        if complete is None:
            return completions_to_wire(())
        return completions_to_wire(await complete(params.argument.name, params.argument.value, others))

    def _completer(self, reference: types.PromptReference | types.ResourceTemplateReference) -> Complete | None:
        if isinstance(reference, types.PromptReference):
            return self._prompts.find(reference.name).complete
        if not principal_of(self._options).may_use(RESOURCES_SCOPE):
            return None
        templates = (one for one in self._toolset.templates() if one.uri_template == reference.uri)
        return next((template.complete for template in templates), None)
