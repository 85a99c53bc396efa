"""Requests for completions: what may follow in an argument of a prompt or of a resource's address."""

from __future__ import annotations

import mcp_types as types

from trysquare.core.prompt import Complete
from trysquare.core.toolset import Toolset
from trysquare.core.types import JsonObject
from trysquare.serve.contexts import principal_of
from trysquare.serve.eras import Request
from trysquare.serve.options import ServeOptions
from trysquare.serve.prompt_requests import PromptRequests
from trysquare.serve.resource_requests import RESOURCES_SCOPE
from trysquare.wire.resources import completions_to_wire


class CompletionRequests:
    """Answers `completion/complete`."""

    def __init__(self, toolset: Toolset, options: ServeOptions, prompts: PromptRequests) -> None:
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
