"""Methods of the protocol: the parameters of each, and the versions that have it."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw, Struct, field

from trysquare.core.json import JsonObject
from trysquare.protocol.content import SamplingMessage
from trysquare.protocol.messages import UNREADABLE, RequestId

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
SEVERITY: Final = {
    level: rank
    for rank, level in enumerate(("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"))
}


class Params(Struct, rename="camel"):
    """Parameters of any request or notification."""

    meta: JsonObject | None = field(name="_meta", default=None)


class Implementation(Struct):
    """The name and version of a program."""

    name: str
    version: str
    title: str | None = None


class InitializeParams(Params, kw_only=True):
    protocol_version: str
    capabilities: JsonObject
    client_info: Implementation


class ListParams(Params, kw_only=True):
    cursor: str | None = None


class RetriedParams(Params, kw_only=True):
    """Parameters of a request that may come again with the answers to what the server asked (2026-07-28)."""

    input_responses: dict[str, JsonObject] | None = None
    request_state: str | None = None


class CallToolParams(RetriedParams, kw_only=True):
    name: str
    arguments: JsonObject | None = None


class GetPromptParams(RetriedParams, kw_only=True):
    name: str
    arguments: dict[str, str] | None = None


class ReadResourceParams(RetriedParams, kw_only=True):
    uri: str


class UriParams(Params, kw_only=True):
    """Parameters of `resources/subscribe`, `resources/unsubscribe`, `skills/get` and a resource's update."""

    uri: str


class TaskParams(Params, kw_only=True):
    """Parameters of `tasks/get` and `tasks/cancel`."""

    taskId: str
    """Written as on the wire, where the header `Mcp-Name` repeats it."""


class UpdateTaskParams(TaskParams, kw_only=True):
    input_responses: dict[str, JsonObject]


class SetLevelParams(Params, kw_only=True):
    level: LogLevel


class CompletionReference(Struct):
    type: Literal["ref/prompt", "ref/resource"]
    name: str | None = None
    uri: str | None = None

    def __post_init__(self) -> None:
        missing = "name" if self.type == "ref/prompt" else "uri"
        if getattr(self, missing) is None:
            raise ValueError(f"Object missing required field `{missing}`")


class CompletionArgument(Struct):
    name: str
    value: str


class CompletionContext(Struct):
    arguments: dict[str, str] | None = None


class CompleteParams(Params, kw_only=True):
    ref: CompletionReference
    argument: CompletionArgument
    context: CompletionContext | None = None


class SubscriptionFilter(Struct, rename="camel", omit_defaults=True):
    """The notifications that a client asks for with `subscriptions/listen`."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None
    task_ids: list[str] | None = None
    """Of the extension for tasks."""


class ListenParams(Params, kw_only=True):
    notifications: SubscriptionFilter


class CancelledParams(Params, kw_only=True):
    request_id: RequestId | None = None
    reason: str | None = None


class ProgressParams(Params, kw_only=True):
    progress_token: RequestId | None = None
    progress: float = 0.0
    total: float | None = None
    message: str | None = None


class LogParams(Params, kw_only=True):
    level: LogLevel
    data: Any = None
    logger: str | None = None


class ElicitParams(Params, kw_only=True):
    message: str
    mode: Literal["form", "url"] = "form"
    requested_schema: JsonObject | None = None
    url: str | None = None
    elicitation_id: str | None = None


class ModelHint(Struct):
    name: str | None = None


class ModelPreferences(Struct, rename="camel"):
    hints: list[ModelHint] | None = None
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None


class CreateMessageParams(Params, kw_only=True):
    messages: list[SamplingMessage]
    max_tokens: int
    model_preferences: ModelPreferences | None = None
    system_prompt: str | None = None
    temperature: float | None = None
    stop_sequences: list[str] | None = None
    metadata: JsonObject | None = None


class Method(NamedTuple):
    """A method: the type of its parameters, and where it exists."""

    params: type[Params]
    handshake: bool = True
    """Whether the versions with a handshake have it."""
    stateless: bool = True
    """Whether 2026-07-28 has it."""
    named_by: str | None = None
    """The parameter that is repeated in the header `Mcp-Name`."""
    cached: Literal["public", "private"] | None = None
    """Who may cache its result (2026-07-28)."""

    @property
    def may_ask(self) -> bool:
        """Whether its result may be questions, after whose answers the request comes again (2026-07-28)."""
        return issubclass(self.params, RetriedParams)


CLIENT_REQUESTS: Final = {
    "initialize": Method(InitializeParams, stateless=False),
    "ping": Method(Params, stateless=False),
    "server/discover": Method(Params, handshake=False, cached="public"),
    "tools/list": Method(ListParams, cached="public"),
    "tools/call": Method(CallToolParams, named_by="name"),
    "prompts/list": Method(ListParams, cached="public"),
    "prompts/get": Method(GetPromptParams, named_by="name"),
    "resources/list": Method(ListParams, cached="public"),
    "resources/templates/list": Method(ListParams, cached="public"),
    "resources/read": Method(ReadResourceParams, named_by="uri", cached="private"),
    "resources/subscribe": Method(UriParams, stateless=False),
    "resources/unsubscribe": Method(UriParams, stateless=False),
    "subscriptions/listen": Method(ListenParams, handshake=False),
    "completion/complete": Method(CompleteParams),
    "logging/setLevel": Method(SetLevelParams, stateless=False),
    "skills/list": Method(ListParams, cached="public"),
    "skills/get": Method(UriParams, cached="private"),
    "tasks/get": Method(TaskParams, handshake=False, named_by="taskId"),
    "tasks/update": Method(UpdateTaskParams, handshake=False, named_by="taskId"),
    "tasks/cancel": Method(TaskParams, handshake=False, named_by="taskId"),
}
"""What a client may request of a server."""
SERVER_REQUESTS: Final = {
    "ping": Method(Params, stateless=False),
    "elicitation/create": Method(ElicitParams),
    "sampling/createMessage": Method(CreateMessageParams),
    "roots/list": Method(Params),
}
"""What a server may request of a client: directly, and in 2026-07-28 inside of a result."""


def decoder_of(params: type[Params]) -> msgspec.json.Decoder[Any]:
    """The decoder of a type of parameters."""
    return msgspec.json.Decoder(params)


def progress_params(token: Any, done: float, total: float | None, message: str | None) -> JsonObject:
    """Parameters of a progress notification, without what is not set."""
    params: JsonObject = {"progressToken": token, "progress": done}
    if total is not None:
        params["total"] = total
    if message is not None:
        params["message"] = message
    return params


def cancelled_params(request_id: RequestId, reason: str) -> JsonObject:
    """Parameters of the notification that takes a request back."""
    return {"requestId": request_id, "reason": reason}


_cancelled = msgspec.json.Decoder(CancelledParams)


def cancelled_id(params: Raw) -> RequestId | None:
    """The request that a `notifications/cancelled` takes back; None for one that cannot be read."""
    try:
        return _cancelled.decode(params).request_id
    except UNREADABLE:
        return None
