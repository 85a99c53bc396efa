"""OpenAPI documents: what is read, what is refused, and what tools their operations become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trysquare import ConfigurationError, Tool, from_openapi
from trysquare.openapi import OpenApiToolset

CLOSED_WORDS = {"type", "properties", "required", "additionalProperties", "$defs", "description"}


def document(paths: dict[str, Any], *, version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    return {"openapi": version, "info": {"title": "Shop", "version": "1"}, "paths": paths, **more}


def operation(**fields: Any) -> dict[str, Any]:
    return {"/things/{id}": {"post": {"operationId": "change", "responses": {}, **fields}}}


def tool_of(fields: dict[str, Any], **more: Any) -> Tool:
    [tool] = from_openapi(document(operation(**fields), **more)).tools()
    return tool


def body(schema: dict[str, Any], media_type: str = "application/json", *, required: bool = True) -> dict[str, Any]:
    return {"requestBody": {"required": required, "content": {media_type: {"schema": schema}}}}


def names(toolset: OpenApiToolset) -> list[str]:
    return [tool.name for tool in toolset.tools()]


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_file_is_read_in_either_form(tmp_path: Path, ending: str) -> None:
    text = json.dumps(document(operation()))
    if ending == "yaml":
        text = (
            "openapi: 3.0.3\ninfo: {title: Shop, version: 2020-01-02}\npaths:\n  /on:\n    get:\n"
            "      operationId: getOn\n      responses:\n        200: {description: ok}\n"
        )
    file = tmp_path / f"api.{ending}"
    file.write_text(text, encoding="utf-8")
    toolset = from_openapi(file)
    assert names(toolset) == (["change"] if ending == "json" else ["get_on"])
    assert toolset.server_info is not None
    # A date of YAML stays the text that it was.
    assert toolset.server_info.version == ("1" if ending == "json" else "2020-01-02")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"swagger": "2.0", "paths": {}}', "Swagger 2.0"),
        ('{"openapi": "2.5", "paths": {}}', "2.5"),
        ('{"openapi": "3.0.0"}', "paths"),
        ('{"openapi": "3.0.0", "paths": {}', "line 1"),
        ("openapi: [1, 2", "line"),
        ("[]", "object"),
        ("a: b", "openapi"),
    ],
)
def test_a_file_that_is_no_such_document_is_named_with_the_reason(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "api.yaml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError) as refused:
        from_openapi(file)
    assert str(file) in str(refused.value)
    assert words in str(refused.value)


def test_a_missing_file_and_a_file_of_other_bytes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"missing\.json"):
        from_openapi(tmp_path / "missing.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        from_openapi(tmp_path / "bytes.json")


@pytest.mark.parametrize(
    ("path", "method", "given", "name"),
    [
        ("/pets/{petId}", "get", None, "get_pets_by_pet_id"),
        ("/pets", "get", "listPets", "list_pets"),
        ("/items/{item_id}", "get", "read_item_items__item_id__get", "read_item"),
        ("/a", "get", "Users.Admin/list all", "users_admin_list_all"),
        ("/a", "get", "ÄÖ", "get_a"),
        ("/v1/" + "very/long/" * 12, "get", None, None),
    ],
)
def test_names_are_those_a_model_can_use(path: str, method: str, given: str | None, name: str | None) -> None:
    one = {"responses": {}, **({} if given is None else {"operationId": given})}
    [found] = names(from_openapi(document({path: {method: one}})))
    assert name is None or found == name
    assert len(found) <= 56


def test_two_operations_of_one_name_stay_apart() -> None:
    paths = {f"/{each}": {"get": {"operationId": "list"}} for each in ("a", "b", "c")}
    found = names(from_openapi(document(paths)))
    assert len(set(found)) == 3
    assert found[0] == "list"


def test_operations_are_chosen_and_renamed() -> None:
    paths: dict[str, Any] = {
        "/pets": {
            "get": {"operationId": "listPets", "tags": ["pets"]},
            "post": {"operationId": "addPet", "tags": ["pets"]},
        },
        "/users": {"get": {"operationId": "listUsers", "tags": ["users"]}},
    }
    whole = document(paths)
    assert names(from_openapi(whole, tags=["pets"])) == ["list_pets", "add_pet"]
    assert names(from_openapi(whole, methods=["GET"])) == ["list_pets", "list_users"]
    assert names(from_openapi(whole, paths="^/users")) == ["list_users"]
    assert names(from_openapi(whole, select=lambda method, path, one: method == "post")) == ["add_pet"]
    assert names(from_openapi(whole, tags=["users"], rename={"list_users": "people"})) == ["people"]
    for wrong in ({"rename": {"list_userz": "x"}}, {"methods": ["FETCH"]}, {"paths": "("}, {"auth": {"nope": "x"}}):
        with pytest.raises(ConfigurationError):
            from_openapi(whole, **wrong)  # pyright: ignore[reportArgumentType]


def test_hints_follow_the_method() -> None:
    paths = {"/a": {method: {"operationId": method} for method in ("get", "post", "put", "delete", "patch", "head")}}
    tools = {tool.name: tool.metadata for tool in from_openapi(document(paths)).tools()}
    assert {name for name, found in tools.items() if found.read_only} == {"get", "head"}
    assert {name for name, found in tools.items() if found.destructive} == {"put", "delete", "patch"}
    assert {name for name, found in tools.items() if found.idempotent} == {"get", "head", "put", "delete"}


def test_parameters_and_fields_of_one_name_stay_apart() -> None:
    parameters = [{"name": "id", "in": "query", "schema": {"type": "integer"}}, {"name": "X-Id", "in": "header"}]
    tool = tool_of({"parameters": parameters, **body({"type": "object", "properties": {"id": {"type": "boolean"}}})})
    properties = tool.input_schema["properties"]
    assert {name: part["type"] for name, part in properties.items()} == {
        "id": "string",
        "query_id": "integer",
        "X_Id": "string",
        "body_id": "boolean",
    }
    assert tool.input_schema["required"] == ["id"]


def test_the_words_of_version_3_0_become_those_of_json_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "low": {"type": "number", "minimum": 1, "exclusiveMinimum": True},
            "none": {"type": "string", "nullable": True, "enum": ["a"]},
            "server": {"type": "string", "readOnly": True},
        },
    }
    properties = tool_of(body(schema), version="3.0.2").arguments.exact["properties"]
    assert properties["low"] == {"type": "number", "exclusiveMinimum": 1}
    assert properties["none"] == {"type": ["string", "null"], "enum": ["a", None]}
    assert "server" not in properties


def test_all_of_is_one_object_and_one_of_a_choice_with_its_own_word() -> None:
    schemas = {
        "Base": {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}}},
        "Cat": {"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"lives": {"type": "integer"}}}]},
        "Dog": {"allOf": [{"$ref": "#/components/schemas/Base"}, {"properties": {"bark": {"type": "boolean"}}}]},
    }
    pet = {
        "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
        "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/components/schemas/Cat"}},
    }
    given = body({"type": "object", "properties": {"pet": pet}})
    [cat, dog] = tool_of(given, components={"schemas": schemas}).input_schema["properties"]["pet"]["anyOf"]
    assert cat["properties"]["kind"]["enum"] == ["cat"]
    assert dog["properties"]["kind"]["enum"] == ["Dog"]
    assert set(cat["properties"]) == {"kind", "lives"}
    assert cat["additionalProperties"] is False


def test_a_schema_that_refers_to_itself_is_a_definition() -> None:
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/components/schemas/Node"}, "value": {"type": "string"}},
    }
    given = body({"type": "object", "properties": {"node": {"$ref": "#/components/schemas/Node"}}})
    schema = tool_of(given, components={"schemas": {"Node": node}}).input_schema
    assert schema["properties"]["node"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"]["Node"]["properties"]["next"] == {"$ref": "#/$defs/Node"}


def test_everything_listed_is_closed_and_free_objects_are_json_text() -> None:
    schema = {
        "type": "object",
        "properties": {
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "deep": {"type": "object", "properties": {"anything": {}}},
        },
    }
    listed = tool_of(body(schema)).input_schema
    assert listed["additionalProperties"] is False
    assert listed["properties"]["labels"]["type"] == "string"
    assert listed["properties"]["deep"]["additionalProperties"] is False
    assert listed["properties"]["deep"]["properties"]["anything"]["type"] == "string"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"parameters": [{"$ref": "#/components/parameters/Nowhere"}]}, "leads nowhere"),
        ({"parameters": [{"$ref": "other.yaml#/Id"}]}, "another document"),
        (body({"$ref": "#/components/schemas/Gone"}), "leads nowhere"),
        (body({"type": "object", "properties": {"a": 3}}), "not an object"),
    ],
)
def test_an_operation_that_cannot_be_read_is_refused_with_the_reason(fields: dict[str, Any], words: str) -> None:
    paths = operation(**fields)
    paths["/fine"] = {"get": {"operationId": "fine"}}
    toolset = from_openapi(document(paths))
    assert names(toolset) == ["fine"]
    [refused] = toolset.refused
    assert refused.route == "POST /things/{id}"
    assert words in refused.reason


def test_a_reference_that_leads_to_itself_and_a_huge_schema_end() -> None:
    schemas: dict[str, Any] = {"Loop": {"$ref": "#/components/schemas/Loop"}}
    for number in range(40):
        # Each doubles the one before: written out it would never end.
        inner = {"$ref": f"#/components/schemas/S{number - 1}"} if number else {"type": "string"}
        schemas[f"S{number}"] = {"type": "object", "properties": {"a": inner, "b": inner}}
    for name in ("Loop", "S39"):
        given = body({"type": "object", "properties": {"x": {"$ref": f"#/components/schemas/{name}"}}})
        [tool] = from_openapi(document(operation(**given), components={"schemas": schemas})).tools()
        assert len(json.dumps(tool.input_schema)) < 100_000


def test_choices_that_multiply_stay_few() -> None:
    parts = [{"oneOf": [{"type": "object", "properties": {f"p{n}_{m}": {}}} for m in range(8)]} for n in range(8)]
    given = {"name": "q", "in": "query", "schema": {"allOf": parts}}
    document = {
        "openapi": "3.1.0", "info": {"title": "Many", "version": "1"},
        "paths": {"/x": {"get": {"parameters": [given]}}},
    }  # fmt: skip
    (tool,) = from_openapi(document).tools()
    assert len(tool.arguments.exact["properties"]["q"]["anyOf"]) == 64
