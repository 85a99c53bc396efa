"""Runtime: llama.cpp in this process, through xllamacpp. A file of weights is loaded once, whoever asks for it."""

from __future__ import annotations

import math
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.models.gguf_header import read_gguf_header
from trysquare.models.loopback import Loopback, checked
from trysquare.models.transcript import Turn
from trysquare.models.vocabulary import Vocabulary, build_tokenizer, read_vocabulary

PROMPT_CHUNK = 256
"""Tokens of a prompt that are read at once: between chunks a request can be taken back."""
_DEFAULT_CONTEXT = 8_192
_PUSH, _PULL = 60.0, 100.0
"""Added to the logits of the tokens in question, so that no other has a share, and of the one that is to be drawn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A token that may come next."""

    token: int
    probability: float


class Runtime:
    """A loaded model. One request runs at a time; its owner holds `lock`."""

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
        self._loopback = Loopback(str(self._server.listening_address), key, self.vocabulary)
        self._harmless = [n for n, text in enumerate(self.vocabulary.tokens) if text.isalnum()]
        self.tokenizer = build_tokenizer(self.vocabulary, self._loopback.tokenize)
        self.evaluated = 0
        """Tokens of prompts that llama.cpp has computed so far, without those that it found in its cache."""
        self._cached: list[int] = []
        """The tokens that llama.cpp's cache begins with: the last prompt, and what was written after it."""

    def close(self) -> None:
        """Let the weights go."""
        self._loopback.close()
        self._server = None

    def tokenize(self, text: str) -> list[int]:
        """The tokens of a text."""
        return self._loopback.tokenize(text)

    def write_prompt(self, turns: Sequence[Turn]) -> list[int]:
        """The tokens of a dialogue in the model's own template, up to where its answer begins."""
        return self._loopback.write_prompt([self._defused(turn) for turn in turns])

    def _defused(self, turn: Turn) -> Turn:
        """A turn whose text cannot end it or begin another: control tokens that stand in it are broken up."""
        content = turn["content"]
        for text in self.vocabulary.control_texts:
            content = content.replace(text, f"{text[0]} {text[1:]}")
        return Turn(role=turn["role"], content=content)

    def read(self, tokens: list[int], cancelled: Callable[[], bool]) -> bool:
        """Let the model read a prompt; False where the request was taken back meanwhile.

        A request for fewer tokens than the cache holds would cut the cache, so the chunks begin where it ends.
        """
        for end in range(_shared(self._cached, tokens) + PROMPT_CHUNK, len(tokens), PROMPT_CHUNK):
            if cancelled():
                return False
            self.complete({"prompt": tokens[:end], "n_predict": 0})
        return not cancelled()

    def weigh(self, tokens: list[int], among: Sequence[int]) -> list[Candidate]:
        """The exact probabilities of the next token among those that are possible, likeliest first."""
        possible = set(among)
        drawn = next((token for token in self._harmless if token not in possible), None)
        if drawn is None:
            everything = self.likeliest(tokens, len(self.vocabulary.tokens))
            return _normed([(token, math.exp(log)) for token, log in everything if token in possible])
        pushed = [*([token, _PUSH] for token in among), [drawn, _PULL]]
        body: JsonObject = {"temperature": 1.0, "samplers": ["temperature"], "post_sampling_probs": True}
        listed = self._next({**body, "prompt": tokens, "n_probs": len(pushed), "logit_bias": pushed}, "top_probs")
        return _normed([(each["id"], each["prob"]) for each in listed if each["id"] in possible])

    def likeliest(self, tokens: list[int], most: int) -> list[tuple[int, float]]:
        """The likeliest next tokens with the logarithms of their probabilities, whatever a grammar says."""
        body: JsonObject = {"temperature": 0.0, "logit_bias": [[self._harmless[0], _PULL]]}
        listed = self._next({**body, "prompt": tokens, "n_probs": most}, "top_logprobs")
        return [(each["id"], each["logprob"]) for each in listed]

    def _next(self, body: JsonObject, key: str) -> list[JsonObject]:
        """What the runtime says of the next token. The one that it draws is thrown away.

        It says nothing where it draws a part of a character, so a harmless letter is always drawn.
        """
        found = self.complete({**body, "n_predict": 1})
        return cast(list[JsonObject], found["choices"][0]["logprobs"]["content"][0][key])

    def complete(self, body: JsonObject) -> JsonObject:
        """A completion. What was read before is not read again."""
        self._cached = list(body["prompt"])
        found = checked(cast(JsonObject, self._server.handle_completions({**_CACHED, **body})))
        self._count(found)
        return found

    def _count(self, found: JsonObject) -> None:
        timings = cast("JsonObject | None", found.get("timings"))
        self.evaluated += int((timings or {}).get("prompt_n", 0))

    def stream(self, body: JsonObject, heard: Callable[[JsonObject], bool]) -> None:
        """A completion token by token, until it ends or `heard` says that it is enough."""
        # The runtime swallows what a callback raises, so a refusal is kept until it has returned.
        refusals: list[JsonObject] = []
        written: list[str] = []

        def hear(piece: JsonObject) -> bool:
            if "error" in piece:
                refusals.append(piece)
                return True
            written.extend(str(choice.get("text") or "") for choice in piece.get("choices", ()))
            self._count(piece)
            return heard(piece)

        self._cached = list(body["prompt"])
        self._server.handle_completions({**_CACHED, **body, "stream": True}, hear)
        self._cached += self.tokenize("".join(written))
        for refusal in refusals:
            checked(refusal)


_CACHED: JsonObject = {"cache_prompt": True, "id_slot": 0}


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two prompts have in common at their beginning."""
    return next(
        (at for at, (left, right) in enumerate(zip(one, other, strict=False)) if left != right),
        min(len(one), len(other)),
    )


def _normed(shares: list[tuple[int, float]]) -> list[Candidate]:
    total = math.fsum(share for _, share in shares) or 1.0
    return [Candidate(token=token, probability=share / total) for token, share in shares]


def _started(xllamacpp: Any, path: Path, context_tokens: int, threads: int | None, key: str) -> Any:
    try:
        return xllamacpp.Server(_parameters(xllamacpp, path, context_tokens, threads, key))
    except RuntimeError as error:
        raise ToolError(
            f"llama.cpp cannot load {path}: {error}",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction="The file may be cut, or of a kind that this llama.cpp does not know, or memory may be short.",
        ) from error


def _parameters(xllamacpp: Any, path: Path, context_tokens: int, threads: int | None, key: str) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = context_tokens
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = threads or writing_threads()
    parameters.cpuparams_batch.n_threads = threads or reading_threads()
    # On a processor, attention in one piece costs a fifth more than in its parts.
    parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    parameters.verbosity = -1
    parameters.warmup = False
    parameters.cache_ram_mib = 0
    parameters.hostnames = ["127.0.0.1"]
    parameters.api_keys = [key]
    return parameters


def writing_threads() -> int:
    """Half of the processors: at one token, threads mostly wait for one another, and the more so on a busy machine."""
    return max(1, reading_threads() // 2)


def reading_threads() -> int:
    """All processors: a prompt, or a batch of forced tokens, is divided among them nearly without loss."""
    return len(os.sched_getaffinity(0))


def _import_xllamacpp() -> Any:
    try:
        import llguidance  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import xllamacpp  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise ToolError(
            f"The runtime of local models is not installed: {error.name} is missing.",
            code=ErrorCode.MODEL_UNAVAILABLE,
            instruction="Install it with `pip install trysquare[local]`.",
        ) from error
    return xllamacpp


_loaded: dict[tuple[int, int], Runtime] = {}
_loading = threading.Lock()


def load(path: Path, *, context_tokens: int | None, threads: int | None) -> Runtime:
    """The runtime of a file: the one that is loaded, whatever its path, or else a new one. Give it back in the end."""
    try:
        about = path.stat()
    except OSError as error:
        raise ToolError(
            f"There are no weights at {path}.",
            code=ErrorCode.MODEL_NOT_INSTALLED,
            instruction="`trysquare models list` shows which models there are and how to install one.",
        ) from error
    file = (about.st_dev, about.st_ino)
    with _loading:
        if file not in _loaded:
            _loaded[file] = Runtime(path, context_tokens=context_tokens, threads=threads)
        _loaded[file].holders += 1
        return _loaded[file]


def give_back(runtime: Runtime) -> None:
    """Say that a runtime is not needed any more; the last to say so lets the weights go."""
    with _loading:
        runtime.holders -= 1
        if runtime.holders:
            return
        for file, loaded in list(_loaded.items()):
            if loaded is runtime:
                del _loaded[file]
    with runtime.lock:
        runtime.close()


def listed(mask: bytes, most: int) -> list[int] | None:
    """The tokens that a mask allows, or None where there are more than `most`. A mask has a byte a token."""
    if len(mask) - mask.count(0) > most:
        return None
    found: list[int] = []
    at = mask.find(_ALLOWED)
    while at >= 0:
        found.append(at)
        at = mask.find(_ALLOWED, at + 1)
    return found


_ALLOWED = b"\xc8"
"""What llguidance writes into a mask for a token that it allows."""
