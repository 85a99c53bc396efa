"""Resources, through the SDK's own client."""

from __future__ import annotations

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.server.clients import MODES, client_of
from tests.server.sample import declared

eras = pytest.mark.parametrize("mode", MODES)


@eras
async def test_resources_and_templates_are_listed(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        resources = await client.list_resources()
        templates = await client.list_resource_templates()
    assert [(one.uri, one.name, one.mime_type) for one in resources.resources] == [
        ("test://notes", "notes", "text/plain"),
        ("test://broken", "broken_resource", None),
    ]
    assert [one.uri_template for one in templates.resource_templates] == ["test://people/{name}"]


@eras
@pytest.mark.parametrize(
    ("uri", "text"),
    [("test://notes", "these are the notes"), ("test://people/Ada%20L", "about Ada L")],
)
async def test_a_resource_is_read(mode: str, uri: str, text: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        result = await client.read_resource(uri)
    [contents] = result.contents
    assert isinstance(contents, types.TextResourceContents)
    assert (str(contents.uri), contents.text) == (uri, text)


@pytest.mark.parametrize(("mode", "code"), [("legacy", -32002), ("2026-07-28", types.INVALID_PARAMS)])
async def test_a_missing_resource_has_the_code_of_its_era(mode: str, code: int) -> None:
    async with client_of(declared.toolset(), mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource("test://nowhere")
    assert caught.value.code == code
    assert "`test://nowhere`" in caught.value.message
    assert caught.value.data["uri"] == "test://nowhere"


@eras
async def test_a_resource_that_crashes_tells_an_incident_only(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource("test://broken")
    assert caught.value.code == types.INTERNAL_ERROR
    assert "incident" in caught.value.message
    assert "secret" not in str(caught.value.error)


@eras
async def test_a_part_of_an_address_is_completed(mode: str) -> None:
    async with client_of(declared.toolset(), mode) as client:
        reference = types.ResourceTemplateReference(type="ref/resource", uri="test://people/{name}")
        result = await client.complete(reference, {"name": "name", "value": "A"})
    assert result.completion.values[0] == "name-A0"
