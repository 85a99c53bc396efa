"""CallContext: what contexts share, what they do not, and what a client can be asked for."""

from __future__ import annotations

import getpass
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from trysquare import Answer, CallContext, ErrorCode, ToolError
from trysquare.core.context import Capability, ClientRequest, ElicitRequest, SamplingRequest, local_principal
from trysquare.testing import ScriptedCaller, accept, make_context


def test_the_default_principal_is_the_user_of_this_system(monkeypatch: pytest.MonkeyPatch) -> None:
    local_principal.cache_clear()
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    assert CallContext().principal.subject == "ada"

    def nobody() -> str:
        raise KeyError("no such user")

    local_principal.cache_clear()
    monkeypatch.setattr(getpass, "getuser", nobody)
    assert CallContext().principal.subject == "local"
    local_principal.cache_clear()


def test_a_handle_of_one_default_context_is_known_in_the_next() -> None:
    handle = CallContext().handles.put("rest", principal="ada")
    assert CallContext().handles.get(handle, principal="ada") == "rest"


def test_the_context_of_a_call_is_the_same_but_for_its_flag_and_deadline() -> None:
    context = CallContext(request_id="7", client="editor", meta={"a": 1}, deadline=50.0)
    own = context.for_call()
    for name in ("principal", "caller", "handles", "deadline", "request_id", "client", "meta", "direct"):
        assert getattr(own, name) == getattr(context, name)
    assert own.cancel_flag is not context.cancel_flag
    assert context.for_call(timeout=1_000_000_000).deadline == 50.0
    shorter = CallContext().for_call(timeout=5).remaining()
    assert shorter is not None
    assert 0 < shorter <= 5


class ModelCaller(ScriptedCaller):
    """A caller whose client has a model and folders."""

    def offers(self, capability: Capability) -> bool:
        return True

    async def request(self, requests: Sequence[ClientRequest]) -> Mapping[str, Answer]:
        contents: dict[str, dict[str, Any]] = {
            "sampling": {"text": "a poem"},
            "roots": {"roots": [{"uri": "file:///a"}]},
            "elicitation": {"ok": True},
        }
        return {wanted.key: Answer(action="accept", content=contents[wanted.needs]) for wanted in requests}


async def test_a_client_that_can_is_asked_for_its_model_and_its_folders() -> None:
    context = make_context(caller=ModelCaller())
    assert context.offers("sampling")
    assert await context.sample("Write a poem.") == "a poem"
    assert await context.roots() == ("file:///a",)
    both = await context.request(SamplingRequest(prompt="x", key="a"), ElicitRequest(message="?", schema={}, key="b"))
    assert set(both) == {"a", "b"}


async def test_a_client_that_cannot_is_told_so_before_anything_is_asked() -> None:
    caller = ScriptedCaller(answers=[accept(ok=True)])
    context = make_context(caller=caller)
    assert (context.offers("elicitation"), context.offers("sampling")) == (True, False)
    with pytest.raises(ToolError) as refused:
        await context.request(ElicitRequest(message="?", schema={}), SamplingRequest(prompt="x"))
    assert refused.value.code is ErrorCode.CAPABILITY_NOT_SUPPORTED
    assert caller.questions == []
    answers = await context.request(ElicitRequest(message="?", schema={}, key="only"))
    assert answers["only"].content == {"ok": True}
