"""Vectors of texts: computed beside the answers, kept in a file, and missed without harm."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.search.stand_in import CountingEncoder, write_tiny
from trysquare.search import Vectors, encoder_file, installed_vectors

if TYPE_CHECKING:
    from trysquare.search import Encoder
    from trysquare.search.encoder import Matrix

TEXTS = ["rename a file", "delete a branch", "weather in a city"]


def _computed(folder: Path, texts: Sequence[str] = TEXTS) -> CountingEncoder:
    """The encoder, after the vectors of the texts were wanted with this folder."""
    encoder = CountingEncoder()
    vectors = Vectors(lambda: encoder, folder=folder)
    assert not vectors.request(texts)
    assert vectors.wait(60)
    assert vectors.request(texts)
    assert vectors.of(texts).shape == (len(texts), encoder.width)
    return encoder


def test_a_text_is_encoded_once_for_all_processes(tmp_path: Path) -> None:
    assert _computed(tmp_path).asked == TEXTS
    assert _computed(tmp_path).asked == []
    assert _computed(tmp_path, [*TEXTS, "something new"]).asked == ["something new"]


def test_nothing_waits_for_vectors_that_are_being_computed() -> None:
    encoder = CountingEncoder(held=True)
    vectors = Vectors(lambda: encoder)
    assert not vectors.request(TEXTS)
    assert not vectors.request(TEXTS)
    assert vectors.busy
    encoder.go.set()
    assert vectors.wait(60)
    assert vectors.request(TEXTS)


@pytest.mark.parametrize("cut", [1, 40, 68, 69, 100])
def test_what_a_killed_process_left_of_a_record_is_dropped(tmp_path: Path, cut: int) -> None:
    _computed(tmp_path)
    [file] = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-cut])
    lost = -(-cut // (len(whole) // len(TEXTS)))
    assert _computed(tmp_path).asked == TEXTS[-lost:]
    assert file.read_bytes() == whole


def test_a_damaged_vector_is_computed_again(tmp_path: Path) -> None:
    _computed(tmp_path)
    [file] = tmp_path.iterdir()
    data = bytearray(file.read_bytes())
    data[20:40] = b"\x7b" * 20
    file.write_bytes(data)
    assert _computed(tmp_path).asked == TEXTS[:1]


def test_a_folder_that_cannot_be_written_costs_only_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert _computed(tmp_path / "file" / "vectors").asked == TEXTS


def test_a_full_file_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _computed(tmp_path)
    [file] = tmp_path.iterdir()
    size = file.stat().st_size // len(TEXTS)
    monkeypatch.setattr("trysquare.search.vectors.LARGEST_FILE", size)
    _computed(tmp_path, ["one more"])
    assert file.stat().st_size == size


def _failing() -> Encoder:
    raise ValueError("the weights are damaged")


def test_an_encoder_that_cannot_be_opened_is_tried_once_and_named() -> None:
    vectors = Vectors(_failing)
    assert not vectors.request(TEXTS)
    assert not vectors.wait(60)
    assert vectors.problem == "the weights are damaged"
    assert not vectors.request(TEXTS)
    assert not vectors.busy


class _Address(CountingEncoder):
    """An encoder behind an address that fails when it is told to."""

    down = False

    def encode(self, texts: Sequence[str]) -> Matrix:
        if self.down:
            raise ConnectionError("refused")
        return super().encode(texts)


def test_an_address_that_fails_is_left_alone_and_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000.0]
    monkeypatch.setattr("trysquare.search.vectors.time.monotonic", lambda: now[0])
    encoder = _Address()
    vectors = Vectors(lambda: encoder, remote=True)
    vectors.request(TEXTS)
    assert vectors.wait(60)
    encoder.down = True
    assert vectors.of_query(("a query",)) is None
    encoder.down = False
    assert vectors.of_query(("a query",)) is None, "it rests for a while"
    now[0] += 31
    assert vectors.of_query(("a query",)) is not None


def test_a_query_that_takes_too_long_is_there_for_the_next_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trysquare.search.vectors.QUERY_SECONDS", 0.0)
    encoder = CountingEncoder()
    vectors = Vectors(lambda: encoder, remote=True)
    vectors.request(TEXTS)
    assert vectors.wait(60)
    encoder.go.clear()
    assert vectors.of_query(("a query",)) is None
    late = [one for one in threading.enumerate() if "_try_query" in one.name]
    encoder.go.set()
    for one in late:
        one.join(60)
    assert vectors.of_query(("a query",)) is not None


class _Wrong(CountingEncoder):
    def encode(self, texts: Sequence[str]) -> Matrix:
        return super().encode(texts)[:, :5]


def test_rows_of_another_width_are_refused() -> None:
    vectors = Vectors(_Wrong)
    vectors.request(TEXTS)
    assert not vectors.wait(60)
    assert "26 numbers" in str(vectors.problem)


def test_the_installed_encoder_is_used_and_there_is_none_without_its_file(own_home: Path) -> None:
    env = {"HOME": str(own_home)}
    assert installed_vectors(env) is None
    encoder_file(env).parent.mkdir(parents=True)
    write_tiny(encoder_file(env))
    vectors = installed_vectors(env)
    assert vectors is not None
    vectors.request(TEXTS)
    assert vectors.wait(60)
    assert vectors.request(TEXTS)
    assert (own_home / ".cache" / "trysquare" / "vectors").is_dir()


def test_a_process_ends_although_vectors_are_being_computed() -> None:
    code = """
import threading
from trysquare.search import Vectors
def hang():
    started.set()
    threading.Event().wait()
started = threading.Event()
Vectors(hang).request(["a text"])
started.wait()
print("ends")
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ends\n", "")
