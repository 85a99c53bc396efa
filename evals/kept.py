"""Kept answers: one line a question in a JSON Lines file, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from trysquare.core.json import JsonObject


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptAnswer:
    """What a model answered to one question in one way."""

    model: str
    way: str
    question: str
    asked: str
    """The digest of all that was sent: an answer to another prompt is not an answer to this one."""
    calls: tuple[JsonObject, ...]
    text: str
    """What was said beside the calls, or instead of them."""
    problem: str | None
    """Why there are no calls, where the way itself failed."""
    seconds: float

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What makes it the answer that somebody looks for."""
        return self.model, self.way, self.question, self.asked


class AnswerFile:
    """The answers in a file. A line that was cut when a run was stopped counts as not there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._answers = {answer.key: answer for answer in _read(path)}

    def find(self, model: str, way: str, question: str, asked: str) -> KeptAnswer | None:
        """The answer that was given before; None where the question has yet to be asked."""
        return self._answers.get((model, way, question, asked))

    @property
    def models(self) -> list[str]:
        """The models that were asked, in the order of their names."""
        return sorted({answer.model for answer in self._answers.values()})

    def keep(self, answer: KeptAnswer) -> None:
        """Write an answer down at once."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n" if _is_cut(self._path) else "")
            file.write(json.dumps(asdict(answer), ensure_ascii=False) + "\n")
        self._answers[answer.key] = answer


def digest(asked: JsonObject) -> str:
    """A short name for all that is sent."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def _read(path: Path) -> Iterable[KeptAnswer]:
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            kept: JsonObject = json.loads(line)
        except ValueError:
            continue
        kept["calls"] = tuple(kept["calls"])
        yield KeptAnswer(**kept)


def _is_cut(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, 2) == 0:
            return False
        file.seek(-1, 2)
        return file.read(1) != b"\n"
