"""Lines in and bytes out, whatever the chunks and however slow the other side."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.processes.pipes import LineBuffer, PipeReader, PipeWriter


@given(st.binary(max_size=300), st.lists(st.integers(1, 20), max_size=40))
def test_lines_are_the_same_however_the_input_is_cut(data: bytes, cuts: list[int]) -> None:
    splitter = LineBuffer(1000)
    lines: list[bytes | bytearray | None] = []
    rest = data
    for cut in cuts:
        lines += splitter.feed(rest[:cut])
        rest = rest[cut:]
    lines += splitter.feed(rest)
    lines += splitter.finish()
    expected = data.split(b"\n")
    assert lines == (expected if expected[-1] else expected[:-1])


@given(st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line)), st.integers(1, 15))
def test_a_line_over_the_limit_is_dropped_alone(lines: list[bytes], limit: int) -> None:
    splitter = LineBuffer(limit)
    found = [line for byte in b"".join(line + b"\n" for line in lines) for line in splitter.feed(bytes([byte]))]
    assert found == [None if len(line) > limit else line for line in lines]


@pytest.mark.parametrize("limit", [10_000_000, 2_000_000])
def test_a_long_line_is_whole_or_dropped_and_the_next_one_is_not_touched(limit: int) -> None:
    splitter = LineBuffer(limit)
    chunks = [b"x" * 700_000] * 5 + [b"x\nnext\n"]
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    assert lines == [b"x" * 3_500_001 if limit > 3_500_001 else None, b"next"]


def _ends(kind: str) -> tuple[int, int]:
    if kind == "pipe":
        return os.pipe()
    left, right = socket.socketpair()
    return left.detach(), right.detach()


async def _read_all(descriptor: int, size: int) -> bytes:
    data = bytearray()

    def read() -> bytes:
        return os.read(descriptor, 100_000)

    while len(data) < size:
        data += await anyio.to_thread.run_sync(read)
    return bytes(data)


@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_more_than_the_other_side_takes_is_kept_until_it_reads(kind: str) -> None:
    reading, writing = _ends(kind)
    writer = PipeWriter(writing, lambda: None)
    data = os.urandom(3_000_000)
    writer.write(data[:2_000_000])
    writer.write(data[2_000_000:])
    assert writer.waiting_bytes > 1_000_000
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.drain, 1)
            assert await _read_all(reading, len(data)) == data
    assert writer.waiting_bytes == 0
    os.close(reading)
    writer.close()
    os.close(writing)


@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_a_reader_that_is_gone_is_noticed_once(kind: str) -> None:
    reading, writing = _ends(kind)
    lost: list[bool] = []
    writer = PipeWriter(writing, lambda: lost.append(True))
    os.close(reading)
    writer.write(b"hello\n")
    writer.write(b"anybody?\n")
    assert lost == [True]
    writer.close()
    os.close(writing)


@pytest.mark.parametrize("kind", ["pipe", "socket"])
async def test_a_reader_that_goes_while_bytes_wait_is_noticed(kind: str) -> None:
    reading, writing = _ends(kind)
    lost = anyio.Event()
    writer = PipeWriter(writing, lost.set)
    writer.write(b"x" * 2_000_000)
    os.close(reading)
    with anyio.fail_after(5):
        await writer.drain(1)
        await lost.wait()
    writer.close()
    os.close(writing)


@pytest.mark.parametrize("kind", ["pipe", "socket", "file"])
async def test_what_is_sent_is_heard_until_the_end(kind: str, tmp_path: Path) -> None:
    data = os.urandom(300_000)
    heard = bytearray()
    ended = anyio.Event()

    def hear(chunk: bytes) -> None:
        heard.extend(chunk)
        if not chunk:
            ended.set()

    if kind == "file":
        (tmp_path / "input").write_bytes(data)
        reading = os.open(tmp_path / "input", os.O_RDONLY)
        PipeReader(reading, hear).start()
    else:
        reading, writing = _ends(kind)
        PipeReader(reading, hear).start()

        def write_all() -> None:
            with os.fdopen(writing, "wb") as stream:
                stream.write(data)

        await anyio.to_thread.run_sync(write_all)
    with anyio.fail_after(10):
        await ended.wait()
    assert bytes(heard) == data
    os.close(reading)
