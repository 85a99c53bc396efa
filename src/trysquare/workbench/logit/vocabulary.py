"""The vocabulary of a local model, as figures and examples."""

from __future__ import annotations

import os
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.types import JsonObject
from trysquare.models.gguf_header import read_gguf_header
from trysquare.models.known import find_known
from trysquare.models.places import weights_file
from trysquare.models.vocabulary import Vocabulary, read_vocabulary

_SHOWN = 30


def local_vocabulary(spec: str) -> Vocabulary:
    """The tokens of the model that a spec names; only local ones show theirs."""
    kind, _, name = spec.partition(":")
    if kind != "local":
        raise ToolError(
            f"`{spec}` shows no vocabulary: only the file of a local model holds one.",
            code=ErrorCode.CAPABILITY_NOT_SUPPORTED,
            instruction="Set `model` to local:NAME, or do without.",
        )
    is_file = name.endswith(".gguf") or os.sep in name
    path = Path(name).expanduser() if is_file else weights_file(find_known(name).name)
    return read_vocabulary(read_gguf_header(path))


def analysed(vocabulary: Vocabulary, contains: str | None) -> JsonObject:
    """How large it is, what is special in it, and the tokens that hold a text."""
    control = frozenset(vocabulary.control)
    plain = [token for number, token in enumerate(vocabulary.tokens) if number not in control]
    figures: JsonObject = {
        "tokens": len(vocabulary.tokens),
        "control_tokens": len(control),
        "control_examples": list(vocabulary.control_texts[:_SHOWN]),
        "single_bytes": sum(len(token) == 1 for token in plain),
        "begin_with_space": sum(token.startswith(b" ") for token in plain),
        "not_whole_characters": sum(not _is_text(token) for token in plain),
        "longest_bytes": max((len(token) for token in plain), default=0),
    }
    return figures if contains is None else {**figures, **_holding(plain, contains)}


def _holding(plain: list[bytes], contains: str) -> JsonObject:
    found = [token for token in plain if contains.encode() in token]
    shown = [token.decode("utf-8", errors="replace") for token in found[:_SHOWN]]
    return {"containing": len(found), "containing_examples": shown}


def _is_text(token: bytes) -> bool:
    try:
        token.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
