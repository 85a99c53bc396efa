"""The ledger of calls: what was put down is there afterwards, whatever ended the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.ledger_worker import call
from tests.support import size
from trysquare import ErrorCode, ToolError
from trysquare.store.call_ledger import CallEnd, CallLedger, KeyedCall

ROOT = Path(__file__).parents[2]

# Processes are started and killed many times in the full size.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[CallLedger]:
    made = CallLedger(path)
    yield made
    made.close()


def done(number: int = 0) -> CallEnd:
    return CallEnd(state="done", ended=2.0, is_error=False, result_digest=f"r{number}", result_bytes=number)


def states(ledger: CallLedger) -> dict[str, str]:
    return {record.id: record.state for record in ledger.recent(limit=1_000_000)}


def journals(path: Path) -> list[Path]:
    return sorted(path.with_name(path.name + "-journals").iterdir())


def killed_after(what: str, path: Path, lines: int) -> list[str]:
    """Let a process acknowledge some lines, kill it with SIGKILL, and return all that it acknowledged."""
    command = [sys.executable, "-m", "tests.store.ledger_worker", what, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        got = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        got.extend(process.stdout.readlines())
    assert process.returncode == -signal.SIGKILL
    # A last line may have been cut while it was written: it acknowledges nothing.
    return [line.strip() for line in got if line.endswith("\n")]


def test_a_call_stands_as_sending_until_its_outcome_is_put_down(ledger: CallLedger) -> None:
    first, second = ledger.begin(call(1)), ledger.begin(call(2))
    ledger.end(first, done(7))
    assert states(ledger) == {first: "done", second: "sending"}
    ledger.end(second, CallEnd(state="not_sent", ended=3.0, note="the server is not there"))
    newest = ledger.recent(limit=1)[0]
    assert (newest.id, newest.state, newest.note, newest.tool) == (
        second,
        "not_sent",
        "the server is not there",
        "write",
    )
    assert ledger.recent(state="done")[0].result_bytes == 7
    assert ledger.recent(server="other") == []


def test_nothing_is_made_on_the_disk_by_reading(path: Path) -> None:
    ledger = CallLedger(path)
    assert ledger.recent() == []
    ledger.close()
    assert not path.exists()


def test_what_ends_between_two_carries_into_the_database_is_whole(ledger: CallLedger) -> None:
    ids = [ledger.begin(call(number)) for number in range(20)]
    ledger.flush()
    for id in ids[:10]:
        ledger.end(id, done())
    ledger.flush()
    assert Counter(states(ledger).values()) == {"done": 10, "sending": 10}


def test_the_journal_is_empty_once_the_database_has_everything(path: Path, ledger: CallLedger) -> None:
    for _ in range(5):
        ledger.end(ledger.begin(call(1)), done())
        ledger.flush()
        # Lines of the last turn lie in one of the two files, and those before it are gone.
        assert sum(file.stat().st_size for file in journals(path)) == 0
    assert len(states(ledger)) == 5


def test_a_process_that_ends_in_order_leaves_no_journal_and_no_open_call(path: Path) -> None:
    ledger = CallLedger(path)
    ledger.end(ledger.begin(call(1)), done())
    ledger.begin(call(2))
    ledger.close()
    assert journals(path) == []
    reader = CallLedger(path)
    assert sorted(states(reader).values()) == ["done", "sent_unknown"]
    reader.close()


@pytest.mark.parametrize("pace", ["work", "hasty"])
def test_after_a_kill_no_acknowledged_outcome_is_lost_and_open_calls_are_unknown(path: Path, pace: str) -> None:
    for round in range(size(3, 40)):
        acknowledged = dict(line.split()[::-1] for line in killed_after(pace, path, 20 + 330 * round))
        reader = CallLedger(path)
        found = states(reader)
        reader.close()
        assert {id: found[id] for id in acknowledged} == {
            id: "done" if outcome == "done" else "sent_unknown" for id, outcome in acknowledged.items()
        }
        assert "sending" not in found.values()
        assert journals(path) == []


def test_a_live_process_keeps_its_calls_while_others_read(path: Path, ledger: CallLedger) -> None:
    id = ledger.begin(call(1))
    reader = CallLedger(path)
    assert reader.take_over() == 0
    ledger.flush()
    assert states(reader) == {id: "sending"}
    reader.close()


def test_a_line_that_was_cut_is_passed_over(path: Path) -> None:
    killed_after("work", path, 1)
    journal = journals(path)[0]
    with journal.open("ab") as file:
        file.write(b'["e","cut')
    reader = CallLedger(path)
    assert set(states(reader).values()) <= {"done", "sent_unknown"}
    reader.close()


def test_a_key_gives_the_answer_of_the_first_call(ledger: CallLedger) -> None:
    id = ledger.claim(call(1), "k")
    assert isinstance(id, str)
    running = ledger.claim(call(1), "k")
    assert isinstance(running, KeyedCall)
    assert running.state == "sending"
    ledger.end_claimed(id, done(), b'{"content":[]}')
    again = ledger.claim(call(1), "k")
    assert isinstance(again, KeyedCall)
    assert (again.state, again.result, again.digest) == ("done", b'{"content":[]}', "d1")


def test_a_key_is_free_again_if_nothing_was_sent(ledger: CallLedger) -> None:
    id = ledger.claim(call(1), "k")
    assert isinstance(id, str)
    ledger.end_claimed(id, CallEnd(state="not_sent", ended=1.0))
    assert isinstance(ledger.claim(call(1), "k"), str)


def test_a_key_belongs_to_one_principal_and_tool(ledger: CallLedger) -> None:
    other = call(1).__class__(principal="you", server="files", tool="write", arguments="{}", digest="d1")
    assert isinstance(ledger.claim(call(1), "k"), str)
    assert isinstance(ledger.claim(other, "k"), str)


def test_of_processes_that_are_killed_none_runs_a_key_that_another_has_sent(path: Path) -> None:
    sent: Counter[str] = Counter()
    for _ in range(size(3, 20)):
        for line in killed_after("claim", path, 25):
            state, key = line.split()
            sent[key] += state == "sent"
    assert max(sent.values()) == 1


def test_only_the_latest_calls_are_kept(path: Path) -> None:
    ledger = CallLedger(path, max_calls=10)
    for _ in range(3):
        for number in range(1001):
            ledger.end(ledger.begin(call(number)), done())
        ledger.flush()
    kept = len(states(ledger))
    ledger.close()
    # Cleared once in some thousand calls.
    assert 10 <= kept < 2 * 1001 + 11


def test_a_key_of_long_ago_can_be_used_again(path: Path) -> None:
    now = 1000.0
    ledger = CallLedger(path, clock=lambda: now)
    id = ledger.claim(call(1), "k")
    assert isinstance(id, str)
    ledger.end_claimed(id, CallEnd(state="done", ended=now), b"{}")
    now += 90_000.0
    ledger.end(ledger.begin(call(2)), done())
    ledger.flush()
    assert isinstance(ledger.claim(call(1), "k"), str)
    ledger.close()


def test_a_disk_that_takes_nothing_refuses_the_call_before_it_is_sent(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = CallLedger(path)
    id = ledger.begin(call(1))

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(ToolError) as refused:
            ledger.begin(call(2))
        # What has happened has happened: its outcome waits in memory.
        ledger.end(id, done())
    assert refused.value.code == ErrorCode.STATE_UNAVAILABLE
    assert refused.value.fields["outcome"] == "not_sent"
    assert states(ledger) == {id: "done"}
    ledger.close()


def test_a_line_that_the_disk_took_only_in_part_does_not_spoil_the_next(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = CallLedger(path)
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:5]))
        with pytest.raises(ToolError):
            ledger.begin(call(1))
    id = ledger.begin(call(2))
    lines = b"".join(journal.read_bytes() for journal in journals(path)).splitlines()
    assert any(line.startswith(b'["b","' + id.encode()) for line in lines)
    ledger.close()
