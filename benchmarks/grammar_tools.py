"""What the section `grammar` works on: tools with calls of them, and a vocabulary like that of a small model."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.peers.known import ROOT

VOCABULARY = 32_768
END = "<|end|>"
_VERBS = ("read", "write", "list", "find", "send", "create", "delete", "update", "check", "run", "open", "merge")
_NOUNS = ("file", "folder", "branch", "issue", "message", "event", "invoice", "user", "page", "query", "test", "job")
_WORDS = ("limit", "path", "title", "since", "until", "labels", "owner", "format", "depth", "reason", "body", "state")


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchTool:
    """A tool with one call of it."""

    name: str
    schema: dict[str, Any]
    arguments: dict[str, Any]

    def call(self) -> str:
        """The call, as it is written."""
        return compact({"name": self.name, "args": self.arguments})

    def call_schema(self) -> dict[str, Any]:
        """The schema of a whole call, as engines take it that know no tools."""
        properties = {"name": {"const": self.name}, "args": self.schema}
        return {"type": "object", "properties": properties, "required": ["name", "args"], "additionalProperties": False}


def compact(value: Any) -> str:
    """JSON without whitespace."""
    return json.dumps(value, separators=(",", ":"))


def bench_tools(count: int) -> list[BenchTool]:
    """So many tools, always the same."""
    return [_tool(number) for number in range(count)]


def _tool(number: int) -> BenchTool:
    random = Random(number)
    name = f"{random.choice(_VERBS)}_{random.choice(_NOUNS)}_{number}"
    names = random.sample(_WORDS, random.randint(1, 5))
    parts = {each: _property(random) for each in names}
    schema = {
        "type": "object",
        "properties": {each: schema for each, (schema, _) in parts.items()},
        "required": names[: random.randint(1, len(names))],
        "additionalProperties": False,
    }
    return BenchTool(name=name, schema=schema, arguments={each: value for each, (_, value) in parts.items()})


def _property(random: Random) -> tuple[dict[str, Any], Any]:
    kinds = [
        ({"type": "string"}, "src/parser.py, and some more words"),
        ({"type": "string", "enum": ["open", "closed", "all"]}, "closed"),
        ({"type": "integer", "minimum": 1, "maximum": 500}, 42),
        ({"type": "boolean"}, True),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 8}, ["urgent", "later"]),
        ({"type": "number"}, 0.25),
    ]
    return random.choice(kinds)


def tokenizer_json(size: int = VOCABULARY) -> str:
    """A byte-level tokenizer that was trained on the standard library's source, kept from run to run."""
    kept = ROOT / "benchmarks" / ".peers" / f"vocabulary-{size}.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
        kept.write_text(_trained(files if size == VOCABULARY else files[:8], size), encoding="utf-8")
    return kept.read_text(encoding="utf-8")


def _trained(files: Sequence[Path], size: int) -> str:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train([str(file) for file in files], trainer)
    return tokenizer.to_str()
