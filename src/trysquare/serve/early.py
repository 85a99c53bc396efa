"""The early front: it answers the first requests of a client as the last start did, while the server is still loading.

Loading takes most of a start, and the list of tools hardly ever changes. So what was answered is kept, together with
all that it follows from; as long as none of that has changed, the next start answers at once. Every request goes to the
real server too, and what it answers to one that was answered early is held against it and not sent a second time.

This module imports little and nothing outside the standard library: it has to run before anything else is loaded.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias, cast

from trysquare.serve.early_greeting import SETTINGS, STARTER, greeting, greets_plainly
from trysquare.serve.first_calls import FirstCall, Id, cancelled_by, plain_call

METHODS = frozenset({"initialize", "server/discover", "tools/list"})
"""The requests whose answers follow from the settings and the code alone, where the rooms allow it."""
CALL = "tools/call"
_VERSION = "io.modelcontextprotocol/protocolVersion"
"""What a client of the modern era sends with every request in place of a handshake."""
_CHUNK = 65536
_MOST_WAITING = 1024 * 1024
"""Bytes that are read before the server is there; more wait in the pipe."""
MOST_RECORDS = 100
"""Starts that are remembered; the oldest go first."""
_SCHEMA = 1

Sign: TypeAlias = "list[int] | None"
"""By what a file is known to be the same: its number, size and time; None where there is none."""


class Record(NamedTuple):
    """What the last start answered, and the files it followed from."""

    code: str
    files: Mapping[str, Sign]
    answers: Mapping[str, str]
    """The JSON of each result, by its request."""

    def still_holds(self) -> bool:
        """Whether nothing has changed since."""
        return self.code == code_sign() and all(file_sign(path) == sign for path, sign in self.files.items())


class Handover(NamedTuple):
    """What the front leaves to the server."""

    data: bytes = b""
    """All that was read, requests that were answered among it."""
    answered: Mapping[Id, str] = {}
    """The JSON of the results that were sent, by the id of the request."""


class EarlyFront:
    """Reads a client's first requests beside the loading of the server, and answers those that it can.

    `greets` says that it may answer `initialize` also where no start before this one did.
    """

    def __init__(self, answers: Mapping[str, str], *, greets: bool) -> None:
        self._answers = answers
        self._greets = greets
        # Of its own, since standard input and output are diverted while the server is loading.
        self._read_from, self._write_to = os.dup(0), os.dup(1)
        self._stop_read, self._stop_write = os.pipe()
        self._data = bytearray()
        self._looked_at = 0
        self._answered: dict[Id, str] = {}
        self.called: tuple[str, ...] = ()
        """The names of the tools that were called so far, by a client that may call."""
        self.calls: tuple[FirstCall, ...] = ()
        """Those of them that are plain, of a client whom we have greeted."""
        self.client: Mapping[str, Any] = {}
        """What that client said of itself in `initialize`."""
        self.is_waited_for = False
        """Whether the client has asked for something that only the server can answer."""
        self._greeted = False
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="early front", daemon=True)
        self._thread.start()

    def hand_over(self) -> Handover:
        """Stop, and give what was read and answered; from now on the server reads."""
        os.write(self._stop_write, b".")
        self._thread.join()
        for descriptor in (self._read_from, self._write_to, self._stop_read, self._stop_write):
            os.close(descriptor)
        return Handover(data=bytes(self._data), answered=self._answered)

    def _run(self) -> None:
        while len(self._data) < _MOST_WAITING:
            ready, _, _ = select.select([self._read_from, self._stop_read], [], [])
            if self._stop_read in ready:
                return
            chunk = _read(self._read_from)
            if not chunk:
                return  # the server finds the end again
            self._data += chunk
            self._answer_lines()

    def _answer_lines(self) -> None:
        while (end := self._data.find(b"\n", self._looked_at)) >= 0:
            line = bytes(self._data[self._looked_at : end])
            self._looked_at = end + 1
            request = _request(line)
            if request is None:
                # What is taken back before it was begun is left to the server.
                cancelled = cancelled_by(line)
                self.calls = tuple(call for call in self.calls if call.id != cancelled)
                self.is_waited_for |= b'"id"' in line
                continue
            self._greeted |= request["method"] == "initialize"
            if request["method"] == CALL:
                self.called = (*self.called, *self._names(request))
                plain = self._plain_calls(request)
                self.calls = (*self.calls, *plain)
                self.is_waited_for |= not plain
            elif (result := self._result(request)) is not None:
                if not self.answer(request["id"], result.encode()):
                    return
                self._answered[request["id"]] = result
                if request["method"] == "initialize":
                    self.client = request["params"]
            else:
                self.is_waited_for = True

    def answer(self, request_id: Id, result: bytes) -> bool:
        """Send the JSON of a result; False where the client is gone."""
        frame = b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (json.dumps(request_id).encode(), result)
        with self._writing:
            return _write(self._write_to, frame)

    def _result(self, request: Mapping[str, Any]) -> str | None:
        """What a request is answered with early; None where that is not known."""
        kept = self._answers.get(request_key(request))
        if kept is None and self._greets and request["method"] == "initialize":
            return greeting(request.get("params") or {})
        return kept

    def _plain_calls(self, request: Mapping[str, Any]) -> Sequence[FirstCall]:
        call = plain_call(request) if self.client else None
        # The same id twice is a mistake that the server tells of.
        return () if call is None or any(each.id == call.id for each in self.calls) else (call,)

    def _names(self, request: Mapping[str, Any]) -> Sequence[str]:
        params: dict[str, Any] = request.get("params") or {}
        name, meta = params.get("name"), params.get("_meta")
        may_call = self._greeted or (isinstance(meta, dict) and _VERSION in meta)
        return (name,) if may_call and isinstance(name, str) else ()


class EarlyRecorder:
    """Watches the server's first answers: drops those that were given early, and keeps all for the next start.

    Without a path nothing is kept.
    """

    def __init__(self, handover: Handover, kept: Mapping[str, str], *, path: str | None, files: Iterable[str]) -> None:
        self.data = handover.data
        self._answered = dict(handover.answered)
        self._kept = dict(kept)
        self._path = path
        self._files = tuple(files)
        self._open: dict[Id, str] = {}
        self._called = False

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to watch for: whoever calls a tool has its list."""
        return self._called and not self._open

    def hear(self, request_id: Id, method: str, params: Mapping[str, Any] | None) -> None:
        """A request comes in."""
        if method in METHODS:
            self._open[request_id] = request_key({"method": method, "params": params})
        elif method == CALL:
            self._called = True

    def lets_out(self, request_id: Id | None, result: bytes | None) -> bool:
        """Whether an answer is still to be sent; `result` is its JSON, or None for an error."""
        key = None if request_id is None else self._open.pop(request_id, None)
        if request_id is None or key is None:
            return True
        if self._path is not None and result is not None and self._kept.get(key) != (text := result.decode()):
            self._kept[key] = text
            save_record(self._path, self._kept, self._files)
        return self._answered.pop(request_id, None) is None


class EarlyStart:
    """A start over stdio: the front, with what the last start tells it to answer, and where this one is kept."""

    def __init__(self, words: Sequence[str]) -> None:
        self._path = record_path(words)
        record = read_record(self._path)
        self._record = record if record is not None and record.still_holds() else None
        answers: Mapping[str, str] = {} if self._record is None else self._record.answers
        self._front = EarlyFront(answers, greets=greets_plainly(words))

    def called(self) -> Sequence[str]:
        """The names of the tools that the client has called so far."""
        return self._front.called

    @property
    def front(self) -> EarlyFront:
        """Who reads the client's requests until the server does."""
        return self._front

    def take_over(self, files: Iterable[str], *, keeps: bool, done: Iterable[Id] = ()) -> EarlyRecorder:
        """End the front. `keeps`: what the server answers follows from `files`, the code and nothing else.

        `done` are the ids of calls that are answered already, and which the server must not see.
        """
        kept: Mapping[str, str] = {} if self._record is None else self._record.answers
        handover = self._front.hand_over()
        left = handover._replace(data=_without_calls(handover.data, done))
        return EarlyRecorder(left, kept, path=self._path if keeps else None, files=files)


def begin_early(words: Sequence[str]) -> EarlyStart | None:
    """Answer at once what can be answered, where the words of the command line serve over stdio."""
    serves = bool(words) and words[0] == "serve" and not any(each.startswith("--http") for each in words)
    return EarlyStart(words) if serves and os.name == "posix" and is_open(0) and is_open(1) else None


def _without_calls(data: bytes, done: Iterable[Id]) -> bytes:
    """What was read without some calls."""
    waiting = set(done)
    kept: list[bytes] = []
    for line in data.split(b"\n"):
        request = _request(line) if waiting else None
        if request is not None and request["method"] == CALL and request["id"] in waiting:
            waiting.remove(request["id"])
        else:
            kept.append(line)
    return b"\n".join(kept)


def record_path(words: Sequence[str]) -> str:
    """Where the record of a start with these words, here and in this environment, is kept."""
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    named = sorted(pair for pair in os.environ.items() if pair[0].startswith(SETTINGS) and pair[0] != STARTER)
    told = json.dumps([sys.executable, sys.version, list(words), os.getcwd(), named])
    return os.path.join(folder, "trysquare", "starts", f"{sha256(told.encode()).hexdigest()}.json")


def read_record(path: str) -> Record | None:
    """The record, or None where there is none that can be used."""
    try:
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        if kept["schema"] != _SCHEMA:
            return None
        return Record(code=kept["code"], files=kept["files"], answers=kept["answers"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save_record(path: str, answers: Mapping[str, str], files: Iterable[str]) -> None:
    """Keep the answers for the next start. Where that cannot be, it is slower, and nothing else."""
    signs = {each: file_sign(each) for each in files}
    kept = {"schema": _SCHEMA, "code": code_sign(), "files": signs, "answers": dict(answers)}
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(kept, file)
        os.replace(temporary, path)
        _sweep(os.path.dirname(path))
    except OSError:
        return


def _sweep(folder: str) -> None:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.stat().st_mtime_ns, reverse=True)
    for entry in found[MOST_RECORDS:]:
        os.unlink(entry.path)


def request_key(request: Mapping[str, Any]) -> str:
    """By what two requests are the same: the method and all parameters but the token for progress."""
    params: dict[str, Any] = dict(request.get("params") or {})
    if isinstance(meta := params.get("_meta"), dict):
        told = cast(dict[str, Any], meta)
        params["_meta"] = {name: value for name, value in told.items() if name != "progressToken"}
    return f"{request['method']} {json.dumps(params, sort_keys=True)}"


def code_sign() -> str:
    """By what this program is known to be the same: the names, sizes and times of its files."""
    found: list[tuple[str, int, int]] = []
    waiting = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.name.endswith(".py"):
                    about = entry.stat()
                    found.append((entry.path, about.st_size, about.st_mtime_ns))
    return sha256(json.dumps(sorted(found)).encode()).hexdigest()


def file_sign(path: str) -> Sign:
    """By what a file is known to be the same."""
    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return None
    return [about.st_ino, about.st_size, about.st_mtime_ns]


def _request(line: bytes) -> dict[str, Any] | None:
    """A request that may have been answered before, or a call."""
    try:
        frame = json.loads(line)
    except (ValueError, RecursionError):
        return None
    request = cast(dict[str, Any], frame if isinstance(frame, dict) else {})
    if request.get("method") not in (*METHODS, CALL):
        return None
    given, params = request.get("id"), request.get("params")
    usable = isinstance(given, str | int) and not isinstance(given, bool)
    return request if usable and isinstance(params, dict | None) and request.get("jsonrpc") == "2.0" else None


def is_open(descriptor: int) -> bool:
    """Whether a descriptor leads anywhere."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:
        return b""


def _write(descriptor: int, frame: bytes) -> bool:
    """Write all of it; False where the client is gone."""
    while frame:
        try:
            frame = frame[os.write(descriptor, frame) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
        except OSError:
            return False
    return True
