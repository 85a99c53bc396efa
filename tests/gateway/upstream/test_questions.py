"""What servers ask, as our client is asked, and back."""

from __future__ import annotations

from typing import Any

import pytest

from trysquare.core.client_requests import Answer, ModelRequest, Question, RootsRequest
from trysquare.gateway.upstream.questions import CannotAsk, answer_to_wire, question_from_wire


def asked(method: str, params: dict[str, Any]) -> object:
    return question_from_wire(method, params, server="files", key="k")


def test_a_question_names_the_server_that_asks() -> None:
    schema = {"type": "object", "properties": {}}
    found = asked("elicitation/create", {"message": "Delete it?", "requestedSchema": schema})
    assert found == Question(message="files asks: Delete it?", schema=schema, key="k")


def test_texts_for_a_model_are_joined() -> None:
    messages = [
        {"role": "user", "content": {"type": "text", "text": "One."}},
        {"role": "user", "content": [{"type": "text", "text": "Two."}, {"type": "text", "text": "Three."}]},
    ]
    found = asked("sampling/createMessage", {"messages": messages, "maxTokens": 7, "systemPrompt": "Be brief."})
    assert found == ModelRequest(prompt="One.\n\nTwo.\nThree.", max_tokens=7, system="Be brief.", key="k")


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("elicitation/create", {"mode": "url", "url": "https://example.com", "message": "Sign in"}),
        ("elicitation/create", {"message": "No schema"}),
        ("sampling/createMessage", {"messages": [{"content": {"type": "image", "data": ""}}]}),
        ("sampling/createMessage", {"messages": "hello"}),
        ("sampling/createMessage", {"messages": [], "tools": [{"name": "t"}]}),
        ("tasks/list", {}),
    ],
)
def test_what_cannot_be_passed_on_is_refused(method: str, params: dict[str, Any]) -> None:
    with pytest.raises(CannotAsk):
        asked(method, params)


def test_answers_go_back_as_the_server_expects_them() -> None:
    question = Question(message="?", schema={}, key="k")
    assert answer_to_wire(question, Answer(action="accept", content={"a": 1})) == {
        "action": "accept",
        "content": {"a": 1},
    }
    assert answer_to_wire(question, Answer(action="decline")) == {"action": "decline"}
    said = answer_to_wire(ModelRequest(prompt="?"), Answer(action="accept", content={"text": "Hi.", "model": None}))
    assert said["content"] == {"type": "text", "text": "Hi."}
    assert said["model"] == "unknown"
    assert answer_to_wire(RootsRequest(), Answer(action="accept")) == {"roots": []}
