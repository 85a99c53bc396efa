"""Scripts: what an inspector has loaded, by number and by file, with their source maps."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from trysquare.debug.cdp.source_maps import SourceMap, read_source_map


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """One loaded script: where it came from, and what it was made of."""

    id: str
    url: str
    map: SourceMap | None

    @property
    def file(self) -> str:
        return unquote(urlsplit(self.url).path) if self.url.startswith("file:") else self.url


@dataclass(frozen=True, kw_only=True, slots=True)
class Spot:
    """A place in a script, as the inspector counts: from 0."""

    url: str
    line: int
    column: int = 0


class Scripts:
    """The scripts of one program."""

    def __init__(self) -> None:
        self._by_id: dict[str, Script] = {}

    def add(self, script_id: str, url: str, map_url: str) -> Script:
        """Remember a script that was loaded."""
        found = read_source_map(url, map_url) if map_url and url.startswith("file:") else None
        script = Script(id=script_id, url=url, map=found)
        self._by_id[script_id] = script
        return script

    def find(self, script_id: str) -> Script | None:
        return self._by_id.get(script_id)

    def written_at(self, script_id: str, line: int, column: int) -> tuple[str, int, int]:
        """The file, line and column that a person knows (counted from 1), of a place in what runs."""
        script = self._by_id.get(script_id)
        if script is None:
            return "", line + 1, column + 1
        if script.map is not None and (found := script.map.original(line, column)) is not None:
            file, source_line, source_column = found
            return file, source_line + 1, source_column + 1
        return script.file, line + 1, column + 1

    def runs_at(self, file: str, line: int) -> Spot | None:
        """The place in what runs, of a line (from 1) of a file that some loaded script was made of."""
        for script in self._by_id.values():
            if script.map is not None and file in script.map.sources:
                place = script.map.generated(file, line - 1)
                if place is not None:
                    return Spot(url=script.url, line=place[0], column=place[1])
        return None
