"""Requests about prompts: `prompts/list` and `prompts/get`."""

from __future__ import annotations

import mcp_types as types

from trysquare.catalog.describe import prompt_description
from trysquare.core.call import direct_calls
from trysquare.core.errors import ErrorCode, InputRequired, NotFound
from trysquare.core.nearest import nearest
from trysquare.core.prompt import Prompt
from trysquare.core.toolset import Toolset
from trysquare.core.types import JsonObject
from trysquare.serve.contexts import bounded, call_context, principal_of
from trysquare.serve.eras import Request
from trysquare.serve.listings import page_of, page_to_wire
from trysquare.serve.options import ServeOptions
from trysquare.serve.tool_requests import questions_to_wire
from trysquare.wire.prompts import messages_to_wire, prompt_to_wire

PROMPTS_SCOPE = "prompts"
"""The scope that a scoped token needs for prompts, which belong to no room."""


class PromptRequests:
    """Answers what clients ask about prompts."""

    def __init__(self, toolset: Toolset, options: ServeOptions) -> None:
        self._toolset = toolset
        self._options = options
        self._direct = options.direct or direct_calls(toolset)

    async def list(self, request: Request, params: types.PaginatedRequestParams) -> JsonObject:
        """`prompts/list`."""
        principal = principal_of(self._options)
        page, following = page_of(self._visible(), key=_name, cursor=params.cursor, size=self._options.page_size)
        return page_to_wire(
            "prompts", [prompt_to_wire(prompt, prompt_description) for prompt in page], following, principal
        )

    async def get(self, request: Request, params: types.GetPromptRequestParams) -> JsonObject:
        """`prompts/get`."""
        context = call_context(request, self._options, self._direct)
        try:
            prompt = self.find(params.name)
            given = dict(params.arguments or {})
            rendering = prompt.render(given, context)
            rendered = await bounded(f"Prompt {prompt.name}", rendering, context, arguments=given)
            return messages_to_wire(prompt, rendered)
        except InputRequired:
            return questions_to_wire(context.caller)

    def find(self, name: str) -> Prompt:
        """The prompt of that name, or an error that names the nearest ones."""
        prompt = self._toolset.find_prompt(name)
        if prompt is not None and principal_of(self._options).may_use(PROMPTS_SCOPE):
            return prompt
        close = nearest(name, (known.name for known in self._visible()), count=3)
        hint = f" The nearest are {', '.join(f'`{near}`' for near in close)}." if close else ""
        raise NotFound(f"There is no prompt `{name[:80]}`.{hint}", code=ErrorCode.PROMPT_NOT_FOUND)

    def _visible(self) -> list[Prompt]:
        return list(self._toolset.prompts()) if principal_of(self._options).may_use(PROMPTS_SCOPE) else []


def _name(prompt: Prompt) -> str:
    return prompt.name
