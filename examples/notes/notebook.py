"""A notebook: one text file a note, in one folder. Knows nothing of tools."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Notebook:
    """Notes by title. Titles come in checked, so that no title leads out of the folder."""

    folder: Path

    def titles(self) -> list[str]:
        return sorted(path.stem for path in self.folder.glob("*.txt"))

    def read(self, title: str) -> str | None:
        path = self._path(title)
        return path.read_text(encoding="utf-8") if path.exists() else None

    def write(self, title: str, text: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        # Written beside and moved into place, so that a note is never half there.
        beside = self._path(title).with_suffix(".tmp")
        beside.write_text(text, encoding="utf-8")
        beside.replace(self._path(title))

    def delete(self, title: str) -> None:
        self._path(title).unlink()

    def _path(self, title: str) -> Path:
        return self.folder / f"{title}.txt"
