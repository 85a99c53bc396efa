"""One-shot workers: input and output, the output limit, the deadline, and what their children do."""

from __future__ import annotations

import os
import sys

import pytest

from trysquare.processes.worker import run_worker


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def test_a_worker_gets_its_input_and_its_output_and_status_come_back() -> None:
    ended = run_worker(
        python("import sys; sys.stderr.write('e'); print(sys.stdin.read() * 2); sys.exit(3)"), given=b"ab", seconds=30
    )
    assert (ended.status, ended.output, ended.errors) == (3, b"abab\n", b"e")


def test_output_beyond_the_limit_is_cut() -> None:
    assert run_worker(python("print('x' * 1000)"), seconds=30, limit=10).output == b"x" * 10


def test_a_worker_that_takes_too_long_is_killed_with_its_children() -> None:
    reading, writing = os.pipe()
    code = f"import os, time\nos.fork()\nos.write({writing}, b'x')\nwhile True: time.sleep(60)"
    with pytest.raises(TimeoutError):
        run_worker(python(code), seconds=3, descriptors=(writing,))
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        # The end of the pipe comes when nobody holds its other end any more.
        assert pipe.read() == b"xx"


def test_a_child_that_is_left_behind_does_not_delay_the_result() -> None:
    code = "import os, time\nif os.fork() == 0: time.sleep(1000)\nprint(os.getpgid(0), flush=True)"
    ended = run_worker(python(code), seconds=30)
    os.killpg(int(ended.output), 9)


def test_a_program_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(OSError, match="no-such-program"):
        run_worker(["/no-such-program"], seconds=30)
