"""Prints requirements of the tools that run the quick tests, pinned as in constraints/dev.txt.

`scripts/lock.sh` resolves them together with the lowest versions of what Trysquare itself depends on. Without the pins,
the tools would be the oldest ones, too, which says nothing about Trysquare.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PIN = re.compile(r"^(?P<name>[a-z0-9-]+)(?:\[[^\]]*\])?==(?P<version>[^ ;\\]+)", re.MULTILINE)


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    pins = dict(_PIN.findall((ROOT / "constraints" / "dev.txt").read_text(encoding="utf-8")))
    own = set(_own(project["project"]))
    for name in sorted(set(_tools(project["dependency-groups"])) - own):
        sys.stdout.write(f"{name}=={pins[name]}\n")


def _own(project: Mapping[str, Any]) -> Iterator[str]:
    """The packages that Trysquare depends on, with all extras."""
    for lines in (project["dependencies"], *project["optional-dependencies"].values()):
        yield from map(_normal_name, lines)


def _tools(groups: Mapping[str, Any]) -> Iterator[str]:
    """The packages of the groups that build Trysquare and test it."""
    for group in ("build", "test"):
        yield from map(_normal_name, groups[group])


def _normal_name(requirement: str) -> str:
    found = _NAME.match(requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found.group()).lower()


if __name__ == "__main__":
    main()
