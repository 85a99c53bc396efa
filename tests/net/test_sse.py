"""Server-sent events in whatever pieces they come."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.net.sse import Event, EventReader, EventTooLong

LINES = st.lists(
    st.binary(max_size=12).map(lambda line: line.replace(b"\r", b"").replace(b"\n", b"")), min_size=1, max_size=3
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def read(*chunks: bytes, most_bytes: int = 10_000) -> list[Event]:
    reader = EventReader(most_bytes)
    return [event for chunk in chunks for event in reader.feed(chunk)]


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    borders = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[start:end] for start, end in pairwise(borders)]


@given(events=st.lists(LINES, max_size=4), end=ENDS, places=st.lists(st.integers(0, 10_000), max_size=8))
def test_events_come_out_as_they_were_written_however_they_are_cut(
    events: list[list[bytes]], end: bytes, places: list[int]
) -> None:
    stream = b"".join(b"".join(b"data: " + line + end for line in lines) + end for lines in events)
    found = read(*cut(stream, places))
    assert [event.data for event in found] == [b" ".join(lines) for lines in events]


@given(stream=st.binary(max_size=200), places=st.lists(st.integers(0, 200), max_size=8))
def test_any_bytes_give_the_same_events_in_any_pieces(stream: bytes, places: list[int]) -> None:
    assert read(*cut(stream, places)) == read(stream)


def test_names_ids_comments_and_waiting_times_are_understood() -> None:
    reader = EventReader(1000)
    stream = (
        b"\xef\xbb\xbf: hello\nid: 7\nretry: 2500\nevent: endpoint\ndata:/here\n\ndata: {}\nunknown: x\n\nid\ndata\n\n"
    )
    assert list(reader.feed(stream)) == [
        Event(name="endpoint", data=b"/here", id="7"),
        Event(name="message", data=b"{}", id="7"),
        Event(name="message", data=b"", id=None),
    ]
    assert reader.retry_seconds == 2.5


def test_an_event_that_is_too_long_is_refused_before_it_is_whole() -> None:
    reader = EventReader(100)
    assert list(reader.feed(b"data: " + b"x" * 80)) == []
    with pytest.raises(EventTooLong):
        list(reader.feed(b"x" * 80))


def test_many_short_events_may_be_longer_together() -> None:
    assert len(read(b"data: 0123456789\n\n" * 50, most_bytes=100)) == 50


def test_a_stream_of_nothing_but_comments_does_not_add_up() -> None:
    assert read(*[b": still here\n"] * 200, most_bytes=100) == []
