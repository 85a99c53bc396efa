"""What servers ask, as our client is asked, and back."""

from __future__ import annotations

from typing import Any

import pytest

from trysquare import Answer
from trysquare.core.context import ElicitRequest, RootsRequest, SamplingRequest, Visit
from trysquare.gateway.upstream.request import CannotAsk, answer_to_wire, question_from_wire


def asked(method: str, params: dict[str, Any]) -> object:
    return question_from_wire(method, params, server="files", key="k")


def test_a_question_names_the_server_that_asks() -> None:
    schema = {"type": "object", "properties": {}}
    found = asked("elicitation/create", {"message": "Delete it?", "requestedSchema": schema})
    assert found == ElicitRequest(message="files asks: Delete it?", schema=schema, key="k")


def test_a_request_for_a_model_passes_on_whole() -> None:
    messages = [
        {"role": "user", "content": {"type": "text", "text": "One."}},
        {"role": "assistant", "content": [{"type": "text", "text": "Two."}, {"type": "text", "text": "Three."}]},
        {"role": "user", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
    ]
    more = {
        "systemPrompt": "Be brief.",
        "temperature": 0.2,
        "stopSequences": ["."],
        "modelPreferences": {"hints": [{"name": "small"}], "costPriority": 1.0},
        "metadata": {"a": 1},
    }
    whole = {"messages": messages, "maxTokens": 7, **more}
    found = asked("sampling/createMessage", {**whole, "includeContext": "allServers", "_meta": {}})
    assert isinstance(found, SamplingRequest)
    assert found.whole == whole
    assert (found.prompt, found.max_tokens, found.system) == ("One.\n\nTwo.\nThree.\n\n", 7, "Be brief.")
    said = {"role": "assistant", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}, "model": "m"}
    assert answer_to_wire(found, Answer(action="accept", content={"text": "", "whole": said})) == said


def test_a_page_to_open_names_the_server_that_asks() -> None:
    params = {"mode": "url", "url": "https://example.com/a", "message": "Sign in", "elicitationId": "e1"}
    found = asked("elicitation/create", params)
    assert found == Visit(message="files asks: Sign in", url="https://example.com/a", id="e1", key="k")
    assert isinstance(found, Visit)
    assert answer_to_wire(found, Answer(action="accept", content={"a": 1})) == {"action": "accept"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("elicitation/create", {"mode": "url", "url": "file:///etc/passwd", "message": "Sign in"}),
        ("elicitation/create", {"mode": "url", "url": "javascript:alert(1)", "message": "Sign in"}),
        ("elicitation/create", {"mode": "voice", "message": "Speak"}),
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
    question = ElicitRequest(message="?", schema={}, key="k")
    assert answer_to_wire(question, Answer(action="accept", content={"a": 1})) == {
        "action": "accept",
        "content": {"a": 1},
    }
    assert answer_to_wire(question, Answer(action="decline")) == {"action": "decline"}
    said = answer_to_wire(SamplingRequest(prompt="?"), Answer(action="accept", content={"text": "Hi.", "model": None}))
    assert said["content"] == {"type": "text", "text": "Hi."}
    assert said["model"] == "unknown"
    assert answer_to_wire(RootsRequest(), Answer(action="accept")) == {"roots": []}
