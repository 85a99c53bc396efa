"""The judges of the differential suite do find differences and messages that do not fit the schema."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.compare import Decision, compare
from tests.differential.material import Json
from tests.differential.model import ERAS, LEGACY, MODERN, TRANSPORTS, Era, Exchange, Outcome, Transport
from tests.differential.runner import table
from tests.differential.schema import violations
from tests.support import RESULT_KEY

CALL = Exchange(name="call", method="tools/call", params={"name": "plain"})
TEXT = {"type": "text", "text": "Hello."}


def response(**members: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 1, **members}


def answered(*messages: Json, **more: Any) -> Outcome:
    return Outcome(messages=messages, sent_ids=(1,), **more)


def result(**members: Any) -> Outcome:
    return answered(response(result={"content": [TEXT], **members}))


def error(code: int, message: str = "wrong", **more: Any) -> Outcome:
    return answered(response(error={"code": code, "message": message, **more}))


def progress(number: int) -> Json:
    params = {"progressToken": 1, "progress": number}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


NEWS = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
DIFFERENT = {
    "another code": (error(-32600), error(-32602)),
    "an error and a result": (error(-32600), result()),
    "another text of a result": (result(), answered(response(result={"content": []}))),
    "another value": (
        result(structuredContent={"a": 1}),
        result(structuredContent={"a": 2}),
    ),
    "an error result": (result(isError=True), result()),
    "another status": (answered(statuses=(400,)), answered(statuses=(404,))),
    "another status on the way": (answered(statuses=(202, 200)), answered(statuses=(200, 200))),
    "a refusal without a message and another code": (
        answered({**response(error={"code": -32700, "message": "x"}), "id": None}, statuses=(400,)),
        answered(statuses=(400,)),
    ),
    "a refusal without a message and with 200": (
        answered({**response(error={"code": -32600, "message": "x"}), "id": None}, statuses=(200,)),
        answered(statuses=(200,)),
    ),
    "another order": (answered(progress(1), progress(2)), answered(progress(2), progress(1))),
    "a notification that is missing": (answered(progress(1)), answered()),
    "news that are missing": (answered(news=(NEWS,)), answered()),
    "another id": (answered({**response(result={}), "id": "1"}), answered(response(result={}))),
    "no answer": (answered(problem="no response in time"), answered()),
    "data that the protocol defines": (
        error(-32022, data={"supported": ["2026-07-28"]}),
        error(-32022, data={"supported": []}),
    ),
    "a member of its own": (result(bogus=1), result()),
}
ALIKE = {
    "our guidance": (result(_meta={RESULT_KEY: {"instruction": "x"}}), result()),
    "our guidance beside other words": (result(_meta={RESULT_KEY: {}, "a/b": 1}), result(_meta={"a/b": 1})),
    "a default": (result(isError=False), result()),
    "a refusal without a message": (
        answered(statuses=(405,)),
        answered({**response(error={"code": -32600, "message": "x"}), "id": None}, statuses=(405,)),
    ),
    "opaque values": (result(requestState="a", nextCursor="b"), result(requestState="c", nextCursor="d")),
    "names of servers": (result(serverInfo={"name": "a"}), result(serverInfo={"name": "b"})),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_a_difference_fails(case: str) -> None:
    ours, theirs = DIFFERENT[case]
    assert len(compare({"x": ours}, {"x": theirs}).failures) == 1


@pytest.mark.parametrize("case", ALIKE)
def test_what_means_the_same_is_equal(case: str) -> None:
    ours, theirs = ALIKE[case]
    found = compare({"x": ours}, {"x": theirs})
    assert (found.equal, found.failures) == (1, [])


def test_another_text_of_an_error_is_listed_and_does_not_fail() -> None:
    found = compare({"x": error(-32602, "one")}, {"x": error(-32602, "two")})
    assert (found.equal, found.failures, len(found.texts)) == (1, [], 1)


DECISION = Decision(names=("x*",), reference="error -32602", ours=("error -32600",), reason="we say so")


def test_a_decided_difference_does_not_fail_but_any_other_does() -> None:
    decided = compare({"x": error(-32600)}, {"x": error(-32602)}, [DECISION])
    assert (decided.decided, decided.failures) == (1, [])
    other = compare({"x": error(-32603)}, {"x": error(-32602)}, [DECISION])
    assert other.failures[0].startswith("x: error -32603; the reference: error -32602")


def test_a_decision_that_decides_nothing_fails() -> None:
    found = compare({"x": error(-32600)}, {"x": error(-32600)}, [DECISION])
    assert "remove it" in found.failures[0]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_table_has_exchanges_of_every_kind(era: Era, transport: Transport) -> None:
    exchanges = table(era, transport).values()
    assert len(exchanges) >= 60
    assert sum(exchange.raw is not None for exchange in exchanges) >= 20


COMPLETE = {"resultType": "complete", "content": [TEXT]}
BAD: dict[str, tuple[Era, Json, str]] = {
    "a result type in a session": (LEGACY, response(result=COMPLETE), "resultType"),
    "no result type": (MODERN, response(result={"content": [TEXT]}), "resultType"),
    "no content": (LEGACY, response(result={}), "content"),
    "an unknown member": (LEGACY, response(result={"content": [TEXT], "bogus": 1}), "bogus"),
    "an unknown member of a block": (LEGACY, response(result={"content": [{**TEXT, "bogus": 1}]}), "bogus"),
    "null for nothing": (LEGACY, response(result={"content": [TEXT], "structuredContent": None}), "structuredContent"),
    "a member beside the result": (LEGACY, response(result={"content": [TEXT]}, bogus=1), "bogus"),
    "an error with a text as code": (LEGACY, response(error={"code": "x", "message": "x"}), "code"),
    "an unknown notification": (MODERN, {"jsonrpc": "2.0", "method": "notifications/elicitation/complete"}, "defined"),
    "progress without a token": (
        LEGACY,
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
        "progressToken",
    ),
    "a request of the server": (MODERN, {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}, "defined"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_message_that_does_not_fit_the_schema_is_found(case: str) -> None:
    era, message, expected = BAD[case]
    found = list(violations(CALL, answered(message), era))
    assert len(found) >= 1
    assert expected in found[0]


def test_messages_that_fit_the_schema_pass() -> None:
    assert list(violations(CALL, answered(progress(1), response(result={"content": [TEXT]})), LEGACY)) == []
    assert list(violations(CALL, answered(progress(1), response(result=COMPLETE)), MODERN)) == []
