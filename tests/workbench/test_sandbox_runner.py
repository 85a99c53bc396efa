"""What is kept of an output: its beginning and its end, whatever the pieces in which it came."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trysquare.processes.sandbox.runner import BoundedOutput

PIECES = st.lists(st.binary(max_size=30), max_size=30)


@given(PIECES, st.integers(1, 40), st.integers(1, 40))
def test_beginning_and_end_are_kept_and_the_rest_is_counted(pieces: list[bytes], head: int, tail: int) -> None:
    whole = b"".join(b"%c" % (65 + byte % 26) for piece in pieces for byte in piece)
    kept = BoundedOutput(head=head, tail=tail)
    at = 0
    for piece in pieces:
        kept.add(whole[at : at + len(piece)])
        at += len(piece)
    assert kept.left_out == max(0, len(whole) - head - tail)
    text = kept.text()
    if kept.left_out:
        assert text == f"{whole[:head].decode()}\n… {kept.left_out:,} bytes left out …\n{whole[-tail:].decode()}"
    else:
        assert text == whole.decode()


@given(PIECES)
def test_memory_does_not_grow_with_the_output(pieces: list[bytes]) -> None:
    kept = BoundedOutput(head=10, tail=10)
    for piece in pieces:
        kept.add(piece)
    assert len(kept.text()) <= 10 + 10 + len("\n…  bytes left out …\n") + 3 + 10
