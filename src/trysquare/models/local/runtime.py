"""llama.cpp runtime (xllamacpp) and its loopback API."""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.models.base import Turn
from trysquare.models.local.vocabulary import Vocabulary, build_tokenizer, read_gguf_header, read_vocabulary

_REMEMBERED = 4_096


class LoopbackServer:
    """Tokenizer and chat template of the loaded model, over llama.cpp's loopback HTTP server.

    It has no reference to the runtime, because llguidance keeps it alive and would keep the weights with it.
    """

    def __init__(self, address: str, key: str, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._address = urlsplit(address)
        self._headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
        self._connection: http.client.HTTPConnection | None = None
        self._sending = threading.Lock()
        self._tokenized: dict[str, list[int]] = {}

    def tokenize(self, text: str) -> list[int]:
        """The tokens of a text; control tokens in it are plain text."""
        if text not in self._tokenized:
            if len(self._tokenized) >= _REMEMBERED:
                self._tokenized.clear()
            self._tokenized[text] = self._vocabulary.exact(text, self._tokens(text, template=False))
        return list(self._tokenized[text])

    def write_prompt(self, turns: Sequence[Turn]) -> list[int]:
        """The tokens of a conversation in the model's template, up to where the response starts."""
        found = self._post("/apply-template", {"messages": list(turns)})
        return self._tokens(str(found["prompt"]), template=True)

    def wait_until_running(self) -> None:
        """Wait until the loop that evaluates requests runs: it answers `/slots`, and misses an earlier end for ever."""
        with self._sending:
            self._send_once("GET", "/slots")

    def _tokens(self, text: str, *, template: bool) -> list[int]:
        body = {"content": text, "add_special": template, "parse_special": template}
        return cast(list[int], self._post("/tokenize", body)["tokens"])

    def _post(self, path: str, body: JsonObject) -> JsonObject:
        with self._sending:
            try:
                return check_response(self._send_once("POST", path, body))
            except (http.client.HTTPException, ConnectionError):
                # The server closed an idle connection.
                self.close()
                return check_response(self._send_once("POST", path, body))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send_once(self, method: str, path: str, body: JsonObject | None = None) -> Any:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(self._address.hostname or "", self._address.port)
        self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
        return json.loads(self._connection.getresponse().read())


def check_response(found: Any) -> JsonObject:
    """A response of the runtime; raises a `ToolError` where it is an error."""
    error = as_object(found).get("error") if isinstance(found, dict) else {"message": str(found)}
    if not error:
        return as_object(found)
    full = as_object(error).get("type") == "exceed_context_size_error"
    raise ToolError(
        f"The local model rejected the request: {as_object(error).get('message')}",
        code=ErrorCode.MODEL_CONTEXT_FULL if full else ErrorCode.MODEL_REFUSED,
        instruction="Compact the conversation, or set a longer context." if full else None,
    )


PROMPT_CHUNK = 256
"""Tokens of a prompt per batch: a request can be cancelled between batches."""
_DEFAULT_CONTEXT = 8_192
_PUSH, _PULL = 60.0, 100.0
"""Logit bias of the tokens in question, so that no other has a share, and of the one to be drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A token that may come next."""

    token: int
    probability: float


class Runtime:
    """A loaded model. One request runs at a time, under `lock`."""

    def __init__(self, path: Path, *, context_tokens: int | None, threads: int | None) -> None:
        xllamacpp = _import_xllamacpp()
        header = read_gguf_header(path)
        architecture = header.get("general.architecture", b"").decode("ascii", errors="replace")
        trained = header.get(f"{architecture}.context_length", _DEFAULT_CONTEXT)
        self.path = path
        self.context_tokens = min(context_tokens or _DEFAULT_CONTEXT, int(trained))
        self.lock = threading.Lock()
        self.holders = 0
        self.vocabulary: Vocabulary = read_vocabulary(header)
        key = secrets.token_urlsafe(32)
        self._server: Any = _started(xllamacpp, path, self.context_tokens, threads, key)
        self._loopback = LoopbackServer(str(self._server.listening_address), key, self.vocabulary)
        self._loopback.wait_until_running()
        self._harmless = [n for n, text in enumerate(self.vocabulary.tokens) if text.isalnum()]
        self.tokenizer = build_tokenizer(self.vocabulary, self._loopback.tokenize)
        self.evaluated = 0
        """Prompt tokens that llama.cpp has evaluated so far, without cached ones."""
        self._cached: list[int] = []
        """The tokens in llama.cpp's cache: the last prompt, and what was generated after it."""

    def close(self) -> None:
        """Unload the weights."""
        self._loopback.close()
        self._server = None

    def tokenize(self, text: str) -> list[int]:
        return self._loopback.tokenize(text)

    def write_prompt(self, turns: Sequence[Turn]) -> list[int]:
        return self._loopback.write_prompt([self._escape_control(turn) for turn in turns])

    def _escape_control(self, turn: Turn) -> Turn:
        """A turn whose text cannot end it or start another: control tokens in it are broken up."""
        content = turn["content"]
        for text in self.vocabulary.control_texts:
            content = content.replace(text, f"{text[0]} {text[1:]}")
        return Turn(role=turn["role"], content=content)

    def read(self, tokens: list[int], cancelled: Callable[[], bool]) -> bool:
        """Evaluate a prompt; False where the request was cancelled meanwhile.

        A request for fewer tokens than are cached would cut the cache, so the chunks start where it ends.
        """
        for end in range(_shared(self._cached, tokens) + PROMPT_CHUNK, len(tokens), PROMPT_CHUNK):
            if cancelled():
                return False
            self.complete({"prompt": tokens[:end], "n_predict": 0})
        return not cancelled()

    def weigh(self, tokens: list[int], among: Sequence[int]) -> list[Candidate]:
        """Exact probabilities of the next token among the possible ones, likeliest first."""
        possible = set(among)
        drawn = next((token for token in self._harmless if token not in possible), None)
        if drawn is None:
            everything = self.likeliest(tokens, len(self.vocabulary.tokens))
            return _normalize([(token, math.exp(log)) for token, log in everything if token in possible])
        pushed = [*([token, _PUSH] for token in among), [drawn, _PULL]]
        body: JsonObject = {"temperature": 1.0, "samplers": ["temperature"], "post_sampling_probs": True}
        listed = self._next({**body, "prompt": tokens, "n_probs": len(pushed), "logit_bias": pushed}, "top_probs")
        return _normalize([(each["id"], each["prob"]) for each in listed if each["id"] in possible])

    def likeliest(self, tokens: list[int], most: int) -> list[tuple[int, float]]:
        """The likeliest next tokens with their log probabilities, without any grammar."""
        body: JsonObject = {"temperature": 0.0, "logit_bias": [[self._harmless[0], _PULL]]}
        listed = self._next({**body, "prompt": tokens, "n_probs": most}, "top_logprobs")
        return [(each["id"], each["logprob"]) for each in listed]

    def _next(self, body: JsonObject, key: str) -> list[JsonObject]:
        """Probabilities of the next token; the drawn token is discarded.

        The runtime reports nothing where it draws a part of a character, so a harmless letter is always drawn.
        """
        found = self.complete({**body, "n_predict": 1})
        return cast(list[JsonObject], found["choices"][0]["logprobs"]["content"][0][key])

    def complete(self, body: JsonObject) -> JsonObject:
        """A completion; the cached part of the prompt is not evaluated again."""
        self._cached = list(body["prompt"])
        found = check_response(cast(JsonObject, self._server.handle_completions({**_CACHED, **body})))
        self._count(found)
        return found

    def _count(self, found: JsonObject) -> None:
        self.evaluated += int(as_object(found.get("timings")).get("prompt_n", 0))

    def stream(self, body: JsonObject, on_piece: Callable[[JsonObject], bool]) -> None:
        """A completion token by token, until it ends or `on_piece` returns True."""
        # The runtime swallows exceptions of the callback, so errors are raised after it has returned.
        refusals: list[JsonObject] = []
        written: list[str] = []

        def receive(piece: JsonObject) -> bool:
            if "error" in piece:
                refusals.append(piece)
                return True
            written.extend(str(choice.get("text") or "") for choice in piece.get("choices", ()))
            self._count(piece)
            return on_piece(piece)

        self._cached = list(body["prompt"])
        self._server.handle_completions({**_CACHED, **body, "stream": True}, receive)
        self._cached += self.tokenize("".join(written))
        for refusal in refusals:
            check_response(refusal)


_CACHED: JsonObject = {"cache_prompt": True, "id_slot": 0}


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common prefix of two prompts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _normalize(shares: list[tuple[int, float]]) -> list[Candidate]:
    total = math.fsum(share for _, share in shares) or 1.0
    return [Candidate(token=token, probability=share / total) for token, share in shares]


def _started(xllamacpp: Any, path: Path, context_tokens: int, threads: int | None, key: str) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = context_tokens
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = threads or writing_threads()
    parameters.cpuparams_batch.n_threads = threads or reading_threads()
    # On a CPU, flash attention costs a fifth more.
    parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    parameters.verbosity = -1
    parameters.warmup = False
    parameters.cache_ram_mib = 0
    parameters.hostnames = ["127.0.0.1"]
    parameters.api_keys = [key]
    try:
        return xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise ToolError(
            f"llama.cpp cannot load {path}: {error}",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction="Check that the file is complete and supported by this llama.cpp, and that memory suffices.",
        ) from error


def writing_threads() -> int:
    """Half of the CPUs: for one token, threads mostly wait for one another, more so on a busy machine."""
    return max(1, reading_threads() // 2)


def reading_threads() -> int:
    """All CPUs: a prompt, or a batch of forced tokens, is divided among them nearly without loss."""
    return len(os.sched_getaffinity(0))


def _import_xllamacpp() -> Any:
    try:
        import llguidance  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import xllamacpp  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise ToolError(
            f"The runtime of local models is not installed: missing package {error.name}.",
            code=ErrorCode.MODEL_UNAVAILABLE,
            instruction="Run `pip install trysquare[local]`.",
        ) from error
    return xllamacpp


_loaded: dict[tuple[int, int], Runtime] = {}
_loading = threading.Lock()


def load(path: Path, *, context_tokens: int | None, threads: int | None) -> Runtime:
    """The runtime of a file, loaded once per file; release it with `give_back`."""
    try:
        about = path.stat()
    except OSError as error:
        raise ToolError(
            f"Weights not found at {path}.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction="Run `trysquare models list` for the models and how to install one.",
        ) from error
    file = (about.st_dev, about.st_ino)
    with _loading:
        if file not in _loaded:
            _loaded[file] = Runtime(path, context_tokens=context_tokens, threads=threads)
        _loaded[file].holders += 1
        return _loaded[file]


def give_back(runtime: Runtime) -> None:
    """Release a runtime; the last release unloads the weights."""
    with _loading:
        runtime.holders -= 1
        if runtime.holders:
            return
        for file, loaded in list(_loaded.items()):
            if loaded is runtime:
                del _loaded[file]
    with runtime.lock:
        runtime.close()


def allowed_tokens(mask: bytes, most: int) -> list[int] | None:
    """The tokens that a mask allows; None where there are more than `most`. A mask has one byte per token."""
    if len(mask) - mask.count(0) > most:
        return None
    return [match.start() for match in re.finditer(_ALLOWED, mask)]


_ALLOWED = b"\xc8"
"""llguidance's mask value of an allowed token."""
