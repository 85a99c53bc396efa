"""Conversions between our values and those of the protocol: results, relayed results, lists, questions, errors."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec
from pydantic_core import PydanticSerializationError, from_json, to_json

from trysquare.core.apps import APPROVAL_PAGE, META_KEY, has_page
from trysquare.core.content import Audio, Content, Image, ResourceContents, ResourceLink, Text
from trysquare.core.context import Answer, ClientRequest, ElicitRequest, RootsRequest, SamplingRequest, Visit
from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.core.metadata import Icon, ToolMetadata
from trysquare.core.prompts import Prompt, PromptArgument, PromptMessage
from trysquare.core.resources import Resource, ResourceTemplate
from trysquare.core.result import Result, envelope_of, guidance_of, render_text
from trysquare.core.text import encodable_value
from trysquare.core.tool import Tool
from trysquare.protocol.messages import INTERNAL_ERROR, INVALID_PARAMS, MISSING_CAPABILITY, RESOURCE_NOT_FOUND, RpcError


def block_to_wire(content: Content | str) -> JsonObject:
    """One piece of an answer as an MCP content block."""
    match content:
        case str():
            return {"type": "text", "text": content}
        case Text():
            return {"type": "text", "text": content.text}
        case Image():
            return {"type": "image", "data": content.data, "mimeType": content.mime_type}
        case Audio():
            return {"type": "audio", "data": content.data, "mimeType": content.mime_type}
        case ResourceLink():
            return {"type": "resource_link", **_link(content)}
        case ResourceContents():
            return {"type": "resource", "resource": contents_to_wire(content)}


def contents_to_wire(contents: ResourceContents) -> JsonObject:
    """What a resource holds, as MCP tells it: text, or base64 bytes."""
    wire: JsonObject = {"uri": contents.uri}
    if contents.mime_type is not None:
        wire["mimeType"] = contents.mime_type
    wire |= {"text": contents.text or ""} if contents.blob is None else {"blob": contents.blob}
    return {**wire, "_meta": dict(contents.meta)} if contents.meta else wire


def _link(link: ResourceLink) -> JsonObject:
    optional = {"mimeType": link.mime_type, "description": link.description}
    return {"uri": link.uri, "name": link.name, **{key: value for key, value in optional.items() if value is not None}}


COMPLETE = "complete"
"""What every result of protocol 2026-07-28 says of itself; the SDK takes it out again for the era before."""
RESULT_KEY = "trysquare/result"
"""Key of `_meta` with what a result says beside its value: code, instruction, next, warnings, page."""


def result_to_wire(result: Result[Any]) -> JsonObject:
    """The answer to a call: what the tool returned, as text and as structured content, and guidance in `_meta`.

    A failure has no structured content: nothing of it would fit the tool's output schema.
    """
    if result.relayed is not None:
        return _relayed(result, result.relayed)
    found: list[Content] = []
    envelope = envelope_of(result, found if result.structured is None else None)
    blocks = [block_to_wire(content) for content in (*found, *result.content)]
    if not blocks or len(envelope) > 1:
        blocks.insert(0, {"type": "text", "text": render_text(envelope)})
    wire: JsonObject = {"resultType": COMPLETE, "content": blocks}
    if not result.success:
        wire["isError"] = True
    elif (structured := _structured(result, envelope) if result.structured is None else result.structured) is not None:
        wire["structuredContent"] = structured
    if meta := _result_meta(result, envelope):
        wire["_meta"] = meta
    return wire


def _structured(result: Result[Any], envelope: JsonObject) -> JsonObject | None:
    """The structured content of a tool that lists no output schema: its fields, or its value; none for plain text.

    With it goes the guidance: there are clients that show a model nothing else of the answer.
    """
    value = envelope.get("value")
    if not result.fields:
        if value is None or (isinstance(value, str) and result.page is None):
            return None
        own: JsonObject = cast(JsonObject, value) if isinstance(value, dict) else {"result": value}
    else:
        own = {name: envelope[name] for name in result.fields}
        own = own if value is None else {"result": value, **own}
    return {**own, **{name: part for name, part in guidance_of(result).items() if name not in own}}


def _result_meta(result: Result[Any], envelope: JsonObject) -> JsonObject:
    """`_meta`: our part under one key, and beside it what the tool added."""
    about = guidance_of(result)
    if not result.success:
        own = ("error_type", "exception_type", "exception_message", *result.fields)
        about = {"code": (result.code or ErrorCode.TOOL_FAILED).value, **about}
        about |= {name: envelope[name] for name in own if name in envelope}
    elif result.structured is not None and result.fields:
        about |= {name: envelope[name] for name in result.fields}
    meta: JsonObject = encodable_value(dict(result.meta)) if result.meta else {}
    return {RESULT_KEY: about, **meta} if about else meta


def _relayed(result: Result[Any], body: bytes) -> JsonObject:
    """What another server answered, read after all, for those who cannot send it as it is."""
    try:
        return from_json(relayed_to_wire(body, result.meta, modern=True))
    except ToolError as error:
        return result_to_wire(Result.from_error(error))


def prompt_to_wire(prompt: Prompt, describe: Callable[[Prompt], str]) -> JsonObject:
    """One entry of `prompts/list`."""
    wire: JsonObject = {"name": prompt.name}
    if prompt.title is not None:
        wire["title"] = prompt.title
    wire["description"] = describe(prompt)
    if prompt.arguments:
        wire["arguments"] = [_argument_to_wire(argument) for argument in prompt.arguments]
    return {**wire, **_extras(prompt.icons, _tagged(prompt.tags, prompt.meta))}


def messages_to_wire(prompt: Prompt, messages: Sequence[PromptMessage]) -> JsonObject:
    """The answer to `prompts/get`."""
    wire = [{"role": message.role, "content": block_to_wire(message.content)} for message in messages]
    return {"resultType": COMPLETE, "description": prompt.description, "messages": encodable_value(wire)}


def _argument_to_wire(argument: PromptArgument) -> JsonObject:
    wire: JsonObject = {"name": argument.name}
    if argument.title is not None:
        wire["title"] = argument.title
    if argument.description is not None:
        wire["description"] = argument.description
    return {**wire, "required": argument.required}


def request_to_wire(request: ClientRequest) -> JsonObject:
    """A request to the client, as the method and parameters that carry it."""
    match request:
        case ElicitRequest():
            params: JsonObject = {"mode": "form", "message": request.message, "requestedSchema": request.schema}
            return {"method": "elicitation/create", "params": params}
        case Visit():
            visit: JsonObject = {"mode": "url", "message": request.message, "url": request.url}
            params = {**visit, "elicitationId": request.id} if request.id else visit
            return {"method": "elicitation/create", "params": params}
        case SamplingRequest():
            return {"method": "sampling/createMessage", "params": _sampling_params(request)}
        case RootsRequest():
            return {"method": "roots/list", "params": {}}


def answer_from_wire(request: ClientRequest, answer: Mapping[str, Any]) -> Answer:
    """What the client sent back, as our answer. Whatever does not fit counts as not answered."""
    match request:
        case ElicitRequest() | Visit():
            return _elicited(answer)
        case SamplingRequest():
            content = {"text": _sampled_text(answer), "model": answer.get("model")}
            whole = {} if request.whole is None else {"whole": dict(answer)}
            return Answer(action="accept", content={**content, **whole})
        case RootsRequest():
            return Answer(action="accept", content={"roots": answer.get("roots") or []})


def _sampling_params(request: SamplingRequest) -> JsonObject:
    if request.whole is not None:
        return request.whole
    message = {"role": "user", "content": {"type": "text", "text": request.prompt}}
    params: JsonObject = {"messages": [message], "maxTokens": request.max_tokens}
    return params if request.system is None else {**params, "systemPrompt": request.system}


def _elicited(answer: Mapping[str, Any]) -> Answer:
    action = answer.get("action")
    if action == "accept":
        content = answer.get("content")
        return Answer(action="accept", content=as_object(content))
    return Answer(action="decline" if action == "decline" else "cancel")


def _sampled_text(answer: Mapping[str, Any]) -> str:
    content = answer.get("content")
    blocks = cast(list[Any], content if isinstance(content, list) else [content])
    texts = [cast(JsonObject, block).get("text") for block in blocks if isinstance(block, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


MAX_COMPLETIONS = 100
"""The protocol allows no more values in one answer."""


def resource_to_wire(resource: Resource) -> JsonObject:
    """One entry of `resources/list`."""
    wire = {"uri": resource.uri, "name": resource.name, **_describe(resource)}
    return wire if resource.size is None else {**wire, "size": resource.size}


def template_to_wire(template: ResourceTemplate) -> JsonObject:
    """One entry of `resources/templates/list`."""
    return {"uriTemplate": template.uri_template, "name": template.name, **_describe(template)}


def reading_to_wire(contents: Sequence[ResourceContents]) -> JsonObject:
    """The answer to `resources/read`."""
    return {"resultType": COMPLETE, "contents": encodable_value([contents_to_wire(part) for part in contents])}


def completions_to_wire(values: Sequence[str]) -> JsonObject:
    """The answer to `completion/complete`: at most a hundred values, and how many there are."""
    shown = [encodable_value(value) for value in values[:MAX_COMPLETIONS]]
    completion = {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}
    return {"resultType": COMPLETE, "completion": completion}


def _describe(item: Resource | ResourceTemplate) -> JsonObject:
    optional = {"title": item.title, "description": item.description, "mimeType": item.mime_type}
    given = {key: value for key, value in optional.items() if value is not None}
    annotations: JsonObject = {"annotations": dict(item.extra.annotations)} if item.extra.annotations else {}
    return {**given, **annotations, **_extras(item.extra.icons, _tagged(item.extra.tags, item.extra.meta))}


def _extras(icons: Sequence[Icon], meta: Mapping[str, Any]) -> JsonObject:
    """The icons and the metadata of an entry, where it has any."""
    extras: JsonObject = {"icons": [icon.to_wire() for icon in icons], "_meta": dict(meta)}
    return {key: value for key, value in extras.items() if value}


def skill_to_wire(resource: Resource) -> JsonObject:
    """The entry of a skill: where it is, its front matter as written, and every file with its digest."""
    assert resource.skill is not None
    return {
        "uri": resource.uri,
        "frontmatter": resource.skill.frontmatter,
        "resources": [
            {"uri": file.uri, "digest": f"sha256:{file.digest}", "size": file.size} for file in resource.skill.files
        ],
    }


VERSION_KEY = "trysquare/version"
DEPRECATED_KEY = "trysquare/deprecated"
TAGS_KEY = "trysquare/tags"
_OWN = "trysquare/"


def tool_to_wire(tool: Tool, describe: Callable[[Tool], str]) -> JsonObject:
    """One entry of `tools/list`. It tells nothing that differs from one connection to another."""
    wire: JsonObject = {"name": tool.name}
    if tool.title is not None:
        wire["title"] = tool.title
    wire["description"] = describe(tool)
    wire["inputSchema"] = tool.input_schema
    if (output_schema := tool.output_schema) is not None:
        wire["outputSchema"] = output_schema
    if annotations := _annotations(tool.metadata):
        wire["annotations"] = annotations
    return {**wire, **_extras(tool.metadata.icons, _meta(tool.metadata))}


def _annotations(metadata: ToolMetadata) -> JsonObject:
    hints = {
        "readOnlyHint": metadata.read_only,
        "destructiveHint": metadata.destructive,
        "idempotentHint": metadata.idempotent,
        "openWorldHint": metadata.open_world,
    }
    return {name: hint for name, hint in hints.items() if hint is not None}


def _meta(metadata: ToolMetadata) -> JsonObject:
    meta = {key: value for key, value in metadata.meta.items() if not key.startswith(_OWN)}
    if metadata.version is not None:
        meta[VERSION_KEY] = metadata.version
    if metadata.deprecated is not None:
        meta[DEPRECATED_KEY] = metadata.deprecated
    if META_KEY not in meta and has_page(metadata):
        meta[META_KEY] = {"resourceUri": APPROVAL_PAGE}
    return _tagged(metadata.tags, meta)


def _tagged(tags: Collection[str], meta: Mapping[str, Any]) -> JsonObject:
    """The metadata of an entry, and its tags."""
    return {**meta, TAGS_KEY: sorted(tags)} if tags else dict(meta)


_CALLERS_FAULT: Final = frozenset(
    {
        ErrorCode.TOOL_NOT_FOUND,
        ErrorCode.PROMPT_NOT_FOUND,
        ErrorCode.RESOURCE_NOT_FOUND,
        ErrorCode.TASK_NOT_FOUND,
        ErrorCode.VALIDATION_INVALID_PARAM,
        ErrorCode.VALIDATION_INVALID_REQUEST,
        ErrorCode.VALIDATION_MISSING_PARAM,
        ErrorCode.VALIDATION_UNKNOWN_PARAM,
    }
)


def protocol_error(error: ToolError, *, stateless: bool) -> RpcError:
    """A foreseen failure as an error of the protocol, with our code and what to do next in its data."""
    data: JsonObject = {"code": error.code.value, **error.fields}
    if error.instruction is not None:
        data["instruction"] = error.instruction
    if error.next is not None:
        data["next"] = error.next
    capability = _missing(error.code, error.fields) if stateless else None
    if capability is not None:
        name, _, mode = capability.partition(".")
        data["requiredCapabilities"] = {name: {mode: {}} if mode else {}}
        return RpcError(MISSING_CAPABILITY, encodable_value(error.message), encodable_value(data))
    return RpcError(_number(error, stateless), encodable_value(error.message), encodable_value(data))


def missing_capability(result: Result[Any]) -> ToolError | None:
    """The failure of a tool that needed a client capability and did not find it; None for any other result."""
    if result.code is None or _missing(result.code, result.fields) is None:
        return None
    return ToolError(result.error or "", code=result.code, instruction=result.instruction, fields=result.fields)


def _missing(code: ErrorCode, fields: Mapping[str, Any]) -> str | None:
    capability = fields.get("capability")
    return capability if code is ErrorCode.CAPABILITY_NOT_SUPPORTED and isinstance(capability, str) else None


def _number(error: ToolError, stateless: bool) -> int:
    if error.code is ErrorCode.RESOURCE_NOT_FOUND and not stateless:
        return RESOURCE_NOT_FOUND
    return INVALID_PARAMS if error.code in _CALLERS_FAULT else INTERNAL_ERROR


Parts: TypeAlias = dict[str, Any]
"""The names at the top of a JSON object, each with the bytes of its value."""
_BEFORE: Final = {
    name: b',"%b":' % name.encode() for name in ("content", "structuredContent", "isError", "_meta", "resultType")
}
"""What stands before the parts that nearly every result has."""
_COMPLETE: Final = b'"complete"'
_OBJECT: Final = ord("{")
_SLICE: Final = 256 * 1024
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def relayed_to_wire(body: bytes, label: Mapping[str, Any], *, modern: bool) -> bytes:
    """Another server's result on one line, with `label` in its `_meta` and the fields of the protocol version.

    Only the names at the top are read; what stands below them goes from one server to the other as it is. A body that
    is not a JSON object in UTF-8 raises a `ToolError`: nothing of it may get into the client's stream.
    """
    try:
        _require_utf8(body)
        # Outside of strings JSON may have line breaks wherever it likes; inside it has none.
        parts = _split(body.replace(b"\n", b" ").replace(b"\r", b" "))
        return _joined(_labelled(parts, label, modern=modern))
    except ValueError as error:
        message = f"Cannot relay the server's result: it is not a JSON object in UTF-8 ({error})."
        raise ToolError(message, code=ErrorCode.TOOL_FAILED) from None


def _labelled(parts: Parts, label: Mapping[str, Any], *, modern: bool) -> Parts:
    own = from_json(bytes(parts["_meta"])) if "_meta" in parts else None
    if meta := {**cast(JsonObject, own), **label} if isinstance(own, dict) else label:
        parts["_meta"] = _encoded(meta)
    parts.setdefault("content", b"[]")
    if modern:
        return {**parts, "resultType": _COMPLETE}
    parts.pop("resultType", None)
    # The session protocol takes only objects here; a server tells the same as text in its content.
    if memoryview(parts.get("structuredContent", b"{"))[0] != _OBJECT:
        del parts["structuredContent"]
    return parts


def _encoded(meta: Mapping[str, Any]) -> bytes:
    try:
        return to_json(meta)
    except PydanticSerializationError:
        # A name or a text of the label holds half a character.
        return to_json(encodable_value(dict(meta)))


def _joined(parts: Parts) -> bytes:
    pieces: list[Any] = []
    for name, part in parts.items():
        pieces += (_BEFORE.get(name) or b",%b:" % to_json(name), part)
    pieces[0] = b"{" + pieces[0][1:]
    pieces.append(b"}")
    return b"".join(pieces)


def _require_utf8(body: bytes) -> None:
    """Raise a `ValueError` for bytes that are no UTF-8, without making one long text of them."""
    if body.isascii():
        return
    decoder, view = codecs.getincrementaldecoder("utf-8")(), memoryview(body)
    for start in range(0, len(body), _SLICE):
        decoder.decode(view[start : start + _SLICE])
    decoder.decode(b"", final=True)
