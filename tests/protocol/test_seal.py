"""A sealed state is opened by its server, for its request and in time; anything else is refused."""

from __future__ import annotations

import base64
import logging
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.protocol import messages, seal

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
BOUND: dict[str, Any] = {
    "method": "tools/call",
    "target": "delete",
    "arguments": {"path": "/tmp/x", "count": 1},
    "principal": "token:ada",
}


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def sealer(*keys: bytes, audience: str = "trysquare", ttl: float = 600.0, clock: Clock | None = None) -> seal.StateSeal:
    return seal.StateSeal(keys or (KEY,), audience=audience, ttl=ttl, clock=clock or Clock())


def assert_refused(opener: seal.StateSeal, sealed: str, bound: dict[str, Any] = BOUND) -> None:
    with pytest.raises(messages.RpcError) as caught:
        opener.open(sealed, bound)
    assert caught.value.code == messages.INVALID_PARAMS
    assert caught.value.data == {"reason": "invalid_request_state"}


json_objects = st.dictionaries(
    st.text(max_size=5), st.none() | st.booleans() | st.integers() | st.text(max_size=5), max_size=4
)


@given(st.text(), json_objects)
def test_a_state_comes_back_as_it_was(state: str, arguments: dict[str, Any]) -> None:
    bound = {**BOUND, "arguments": arguments}
    assert sealer().open(sealer().seal(state, bound), bound) == state


def test_the_order_of_the_arguments_does_not_matter() -> None:
    turned = {name: BOUND[name] for name in reversed(BOUND)} | {"arguments": {"count": 1, "path": "/tmp/x"}}
    assert sealer().open(sealer().seal("state", BOUND), turned) == "state"


def test_a_state_cannot_be_read_and_no_two_are_alike() -> None:
    first, second = (sealer().seal("the secret answer", BOUND) for _ in range(2))
    assert first != second
    raw = base64.urlsafe_b64decode(first.removeprefix("v1.") + "==")
    assert b"secret" not in raw
    assert set(first.removeprefix("v1.")) <= set(string.ascii_letters + string.digits + "-_")


@given(st.data())
def test_a_state_with_any_bit_changed_is_refused(data: st.DataObject) -> None:
    sealed = sealer().seal("state", BOUND)
    raw = bytearray(base64.urlsafe_b64decode(sealed.removeprefix("v1.") + "=" * (-len(sealed.removeprefix("v1.")) % 4)))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert_refused(sealer(), "v1." + base64.urlsafe_b64encode(raw).decode().rstrip("="))


@given(st.integers(0, 200))
def test_a_state_that_was_cut_is_refused(length: int) -> None:
    sealed = sealer().seal("state", BOUND)
    if length < len(sealed):
        assert_refused(sealer(), sealed[:length])


@given(st.text(max_size=80) | st.text(max_size=80).map("v1.".__add__))
def test_any_other_text_is_refused(text: str) -> None:
    assert_refused(sealer(), text)


def test_only_the_canonical_text_is_opened() -> None:
    sealed = sealer().seal("state", BOUND)
    for changed in (
        f"{sealed}=",
        f" {sealed}",
        f"{sealed}\n",
        sealed.removeprefix("v1."),
        sealed.replace("v1.", "v2."),
    ):
        assert_refused(sealer(), changed)


@pytest.mark.parametrize(
    "other",
    [
        {"method": "prompts/get"},
        {"target": "list"},
        {"arguments": {"path": "/tmp/y", "count": 1}},
        {"arguments": {"path": "/tmp/x", "count": 2}},
        {"arguments": {"path": "/tmp/x"}},
        {"arguments": {}},
        {"principal": "token:eve"},
        {"principal": None},
    ],
)
def test_a_state_of_another_request_is_refused(other: dict[str, Any]) -> None:
    assert_refused(sealer(), sealer().seal("state", BOUND), {**BOUND, **other})


def test_a_state_of_another_server_is_refused() -> None:
    assert_refused(sealer(audience="other"), sealer().seal("state", BOUND))
    assert_refused(sealer(OTHER_KEY), sealer().seal("state", BOUND))


def test_without_keys_each_server_has_its_own() -> None:
    one, other = (seal.StateSeal((), audience="a", ttl=60.0) for _ in range(2))
    sealed = one.seal("state", BOUND)
    assert one.open(sealed, BOUND) == "state"
    assert_refused(other, sealed)


def test_a_state_expires() -> None:
    clock = Clock()
    own = sealer(ttl=10.0, clock=clock)
    sealed = own.seal("state", BOUND)
    clock.now += 9.0
    assert own.open(sealed, BOUND) == "state"
    clock.now += 1.0
    assert_refused(own, sealed)


@pytest.mark.parametrize(("ahead", "is_opened"), [(30.0, True), (90.0, False)])
def test_a_state_of_the_future_is_refused_beyond_the_difference_of_clocks(ahead: float, is_opened: bool) -> None:
    early = Clock()
    early.now += ahead
    sealed = sealer(clock=early).seal("state", BOUND)
    if is_opened:
        assert sealer().open(sealed, BOUND) == "state"
    else:
        assert_refused(sealer(), sealed)


def test_keys_are_rotated_without_losing_a_state() -> None:
    sealed = sealer(OTHER_KEY).seal("state", BOUND)
    rotating = sealer(KEY, OTHER_KEY)
    assert rotating.open(sealed, BOUND) == "state"
    fresh = rotating.seal("state", BOUND)
    assert sealer(KEY).open(fresh, BOUND) == "state"
    assert_refused(sealer(OTHER_KEY), fresh)
    assert_refused(sealer(KEY), sealed)


def test_why_a_state_is_refused_is_for_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "trysquare.server")
    sealed = sealer().seal("the secret answer", BOUND)
    assert_refused(sealer(), sealed, {**BOUND, "principal": "token:eve"})
    assert "reason=it belongs to another request" in caplog.text
    assert not any(part in caplog.text for part in ("secret", sealed, "/tmp/x", "token:"))
