"""Resources, through the SDK's own client."""

from __future__ import annotations

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.server.clients import MODES, client_of
from tests.server.sample import declared
from trysquare import DeclarationError, Declarations

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


shelf = Declarations()


@shelf.resource("shelf://{row}/{path*}{?limit,exact}")
def book(row: int, path: str, limit: int = 10, exact: bool = False) -> list[object]:
    """One book."""
    return [row, path, limit, exact]


@shelf.resource("plain://{+path}")
async def plain(path: str) -> str:
    """Whatever is there."""
    return path


@eras
@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("shelf://3/a/b", '[3,"a/b",10,false]'),
        ("shelf://3/a?limit=5", '[3,"a",5,false]'),
        ("shelf://3/a?exact=true&limit=5", '[3,"a",5,true]'),
        ("shelf://3/a%3Fb?", '[3,"a?b",10,false]'),
        ("plain://a/b%20c", "a/b c"),
    ],
)
async def test_parts_and_queries_of_an_address_come_as_the_types_of_the_parameters(
    mode: str, uri: str, text: str
) -> None:
    async with client_of(shelf.toolset(), mode) as client:
        [contents] = (await client.read_resource(uri)).contents
    assert isinstance(contents, types.TextResourceContents)
    assert contents.text.replace(" ", "") == text.replace(" ", "")


@eras
@pytest.mark.parametrize(("uri", "name"), [("shelf://three/a", "row"), ("shelf://3/a?limit=many", "limit")])
async def test_a_part_of_the_wrong_type_is_an_error_that_names_it(mode: str, uri: str, name: str) -> None:
    async with client_of(shelf.toolset(), mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
    assert caught.value.code == types.INVALID_PARAMS
    assert f"`{name}`" in caught.value.message


@pytest.mark.parametrize("uri", ["shelf://3/a?other=1", "shelf://3", "shelf://3/a?limit=1&other=1"])
async def test_an_address_with_more_or_less_than_its_template_is_not_found(uri: str) -> None:
    async with client_of(shelf.toolset(), "legacy") as client:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
    assert caught.value.code == -32002


@pytest.mark.parametrize(
    ("uri", "named"),
    [
        ("t://{a}{&q}", "{&q}"),
        ("t://{a}{#q}", "{#q}"),
        ("t://{a,q}", "{a,q}"),
        ("t://{a}{?q}/more", "{?q}/more"),
        ("t://{a:3}", "{a:3}"),
        ("t://{a", "{a"),
        ("t://a}", "}"),
        ("t://{1a}", "{1a}"),
    ],
)
def test_a_template_that_would_never_match_is_refused_where_it_is_declared(uri: str, named: str) -> None:
    def read(a: str, q: str = "") -> str:
        """Read."""
        return a + q

    with pytest.raises(DeclarationError) as caught:
        Declarations().resource(uri)(read)
    assert f"`{named}`" in str(caught.value)


def test_a_query_needs_a_default() -> None:
    def read(a: str, q: str) -> str:
        """Read."""
        return a + q

    with pytest.raises(DeclarationError, match="`q`"):
        Declarations().resource("t://{a}{?q}")(read)
