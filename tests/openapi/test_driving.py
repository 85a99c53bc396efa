"""Every operation of documents of many kinds, called with random arguments on a server that checks each request."""

from __future__ import annotations

from typing import Any

import pytest

from tests.openapi.driving import FILLS, drive

KINDS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "number": {"type": "number", "minimum": 0.5},
    "flag": {"type": "boolean"},
    "list": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
    "object": {
        "type": "object",
        "properties": {"first": {"type": "string"}, "second": {"type": "integer"}},
        "required": ["first", "second"],
    },
}
STYLES = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}


def styles() -> dict[str, Any]:
    """An operation for each place, style, way to explode and kind of value that the specification defines."""
    paths: dict[str, Any] = {}
    for place, known in STYLES.items():
        for style in known:
            for explode in (True, False):
                for kind, schema in KINDS.items():
                    if style in ("spaceDelimited", "pipeDelimited") and (explode or kind not in ("list", "object")):
                        continue
                    if style == "deepObject" and (not explode or kind != "object"):
                        continue
                    if schema["type"] == "object" and style in ("spaceDelimited", "pipeDelimited"):
                        schema = {"type": "object", "properties": {"first": {"type": "integer"}}, "required": ["first"]}
                    name = f"{place}-{style}-{kind}{'-explode' if explode else ''}"
                    given = {
                        "name": "X-Value" if place == "header" else "value", "in": place, "style": style,
                        "explode": explode, "schema": schema, "required": True,
                    }  # fmt: skip
                    path = f"/{name}/{{value}}/end" if place == "path" else f"/{name}"
                    paths[path] = {"get": {"operationId": name, "parameters": [given], "responses": {"200": {}}}}
    return {"openapi": "3.1.0", "info": {"title": "Styles", "version": "1"}, "paths": paths}


def body(media_type: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = {"200": {"description": "", "content": {"application/json": {"schema": schema}}}}
    return {"post": {"requestBody": {"content": {media_type: {"schema": schema}}, **more}, "responses": answer}}


PET: dict[str, Any] = {
    "type": "object", "required": ["kind", "id"], "discriminator": {"propertyName": "kind"},
    "properties": {"kind": {"type": "string"}, "id": {"type": "integer", "readOnly": True},
                   "friends": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}, "maxItems": 1}},
}  # fmt: skip
SCHEMAS: dict[str, Any] = {
    "Pet": PET,
    "Cat": {"allOf": [{"$ref": "#/components/schemas/Pet"},
                      {"type": "object", "properties": {"lives": {"type": "integer", "minimum": 1, "maximum": 9}}}]},
    "Dog": {"allOf": [{"$ref": "#/components/schemas/Pet"}],
            "properties": {"bark": {"type": "string", "maxLength": 5, "nullable": True}}, "required": ["bark"]},
    "Any": {"oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
            "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/components/schemas/Cat",
                                                                  "dog": "#/components/schemas/Dog"}}},
    "Form": {"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        "size": {"type": "object", "properties": {"width": {"type": "integer"}}, "required": ["width"]},
        "on": {"type": "boolean"}}},
    "Upload": {"type": "object", "required": ["file"], "properties": {
        "file": {"type": "string", "format": "binary"}, "note": {"type": "string"},
        "more": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}},
    "Limits": {"type": "object", "required": ["a"], "properties": {
        "a": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1},
        "when": {"type": "string", "format": "date-time"}, "code": {"type": "string", "pattern": "^[A-Z]{2}\\d$"},
        "way": {"type": "string", "enum": ["up", "down"], "nullable": True},
        "labels": {"type": "object", "additionalProperties": {"type": "integer"}}, "free": {}}},
}  # fmt: skip
SCHEMES = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "inQuery": {"type": "apiKey", "in": "query", "name": "key"},
    "inCookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "login": {"type": "http", "scheme": "basic"},
    "token": {"type": "http", "scheme": "bearer"},
    "oauth": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://x.example", "scopes": {}}}},
    "openId": {"type": "openIdConnect", "openIdConnectUrl": "https://x.example"},
}


def bodies(version: str) -> dict[str, Any]:
    """Bodies of every media type, and every way to sign in."""
    paths = {
        f"/{media_type.rpartition('/')[2]}/{name}": body(
            media_type, {"$ref": f"#/components/schemas/{name}"}, required=required
        )
        for media_type, names in {
            "application/json": SCHEMAS, "application/vnd.pets+json": ["Any"],
            "application/x-www-form-urlencoded": ["Form"], "multipart/form-data": ["Form", "Upload"],
        }.items()
        for name in names
        for required in (name != "Limits",)
    }  # fmt: skip
    paths["/list"] = body("application/json", {"type": "array", "items": {"$ref": "#/components/schemas/Cat"}})
    paths["/text"] = body("text/plain", {"type": "string"}, required=True)
    paths["/bytes"] = body("application/octet-stream", {}, required=True)
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Form"}}}
    filtered = {"name": "filter", "in": "query", "required": True, "content": content}
    paths["/json-parameter"] = {"get": {"parameters": [filtered], "responses": {"204": {}}}}
    for number, way in enumerate([{name: []} for name in SCHEMES] + [{"key": [], "inQuery": [], "token": []}]):
        paths[f"/way/{number}"] = {"get": {"security": [way], "responses": {"200": {}}}}
    return {
        "openapi": version, "info": {"title": "Bodies", "version": "1"}, "paths": paths, "security": [{"token": []}],
        "components": {"schemas": SCHEMAS, "securitySchemes": SCHEMES},
    }  # fmt: skip


@pytest.mark.parametrize("document", [styles(), bodies("3.0.3"), bodies("3.1.0")], ids=["styles", "3.0", "3.1"])
async def test_every_operation_is_called_as_its_document_says(document: dict[str, Any]) -> None:
    driven = await drive(document)
    assert driven.faults == []
    assert driven.refused == []
    assert driven.without_values == []
    assert driven.accepted == len(document["paths"]) * len(FILLS)


async def test_the_server_finds_a_wrong_request() -> None:
    """The check itself: a document that says something else than the one that the tools are made of."""
    document = bodies("3.0.3")
    document["paths"] = {"/json/Limits": document["paths"]["/json/Limits"]}
    stricter = {**SCHEMAS["Limits"], "required": ["a", "never"]}
    driven = await drive(document, served={**document, "components": {"schemas": {"Limits": stricter}}})
    assert driven.accepted == 0
    assert len(driven.faults) == len(FILLS)
