"""Resources and templates: ours as MCP lists and reads them; completions beside them."""

from __future__ import annotations

from collections.abc import Sequence

from trysquare.core.content import ResourceContents
from trysquare.core.resource import Resource, ResourceTemplate
from trysquare.core.types import JsonObject
from trysquare.wire.blocks import contents_to_wire
from trysquare.wire.results import COMPLETE
from trysquare.wire.surrogates import replaced

MAX_COMPLETIONS = 100
"""The protocol allows no more values in one answer."""


def resource_to_wire(resource: Resource) -> JsonObject:
    """One entry of `resources/list`."""
    wire = {"uri": resource.uri, "name": resource.name, **_told(resource)}
    return wire if resource.size is None else {**wire, "size": resource.size}


def template_to_wire(template: ResourceTemplate) -> JsonObject:
    """One entry of `resources/templates/list`."""
    return {"uriTemplate": template.uri_template, "name": template.name, **_told(template)}


def reading_to_wire(contents: Sequence[ResourceContents]) -> JsonObject:
    """The answer to `resources/read`."""
    return {"resultType": COMPLETE, "contents": replaced([contents_to_wire(part) for part in contents])}


def completions_to_wire(values: Sequence[str]) -> JsonObject:
    """The answer to `completion/complete`: at most a hundred values, and how many there are."""
    shown = [replaced(value) for value in values[:MAX_COMPLETIONS]]
    completion = {"values": shown, "total": len(values), "hasMore": len(values) > len(shown)}
    return {"resultType": COMPLETE, "completion": completion}


def _told(thing: Resource | ResourceTemplate) -> JsonObject:
    optional = {"title": thing.title, "description": thing.description, "mimeType": thing.mime_type}
    return {key: value for key, value in optional.items() if value is not None}
