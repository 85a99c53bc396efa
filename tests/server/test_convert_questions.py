"""Questions to the client, and what counts as an answer."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest

from trysquare import Answer
from trysquare.core.context import ElicitRequest, RootsRequest, SamplingRequest
from trysquare.server.convert import answer_from_wire, request_to_wire

QUESTION = ElicitRequest(message="Sure?", schema={"type": "object", "properties": {}})


def test_each_request_is_one_that_the_protocol_knows() -> None:
    types.ElicitRequest.model_validate(request_to_wire(QUESTION))
    types.CreateMessageRequest.model_validate(request_to_wire(SamplingRequest(prompt="p", system="s")))
    types.ListRootsRequest.model_validate(request_to_wire(RootsRequest()))


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ({"action": "accept", "content": {"a": 1}}, Answer(action="accept", content={"a": 1})),
        ({"action": "accept"}, Answer(action="accept")),
        ({"action": "accept", "content": "yes"}, Answer(action="accept")),
        ({"action": "decline", "content": {"a": 1}}, Answer(action="decline")),
        ({"action": "cancel"}, Answer(action="cancel")),
        ({"action": "ACCEPT"}, Answer(action="cancel")),
        ({}, Answer(action="cancel")),
    ],
)
def test_only_an_acceptance_accepts(sent: dict[str, Any], answer: Answer) -> None:
    assert answer_from_wire(QUESTION, sent) == answer


def test_a_models_answer_is_its_text() -> None:
    one = answer_from_wire(SamplingRequest(prompt="p"), {"content": {"type": "text", "text": "hi"}, "model": "m"})
    assert one.content == {"text": "hi", "model": "m"}
    blocks = [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]
    assert answer_from_wire(SamplingRequest(prompt="p"), {"content": blocks}).content["text"] == "a\nb"


def test_folders_are_listed() -> None:
    roots = [{"uri": "file:///a"}]
    assert answer_from_wire(RootsRequest(), {"roots": roots}).content == {"roots": roots}
    assert answer_from_wire(RootsRequest(), {}).content == {"roots": []}
