"""Capabilities: what this machine can really do, probed once a run, with the reason where it cannot."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool
from trysquare.workbench.capabilities import code_probes

Probe: TypeAlias = Callable[[], Awaitable[str | None]]
"""Tries a capability: None where it is there, else a sentence that says what is missing."""
_TIMEOUT = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What was probed: each capability with None where it is there, or why it is not."""

    found: Mapping[str, str | None]

    def missing(self, needs: Iterable[str]) -> tuple[str, ...]:
        """Why a tool with these needs cannot work; nothing where it can."""
        return tuple(reason for need in needs if (reason := self._reason(need)) is not None)

    def has(self, needs: Iterable[str]) -> bool:
        """Whether all of them are there."""
        return not self.missing(needs)

    def _reason(self, need: str) -> str | None:
        return self.found.get(need, f"nothing here can tell whether `{need}` is there")


async def probed(tools: Iterable[Tool], probes: Mapping[str, Probe]) -> Capabilities:
    """Probe what some tools need, and nothing else, all at once."""
    needs = sorted({need for tool in tools for need in tool.metadata.needs if need in probes})
    reasons = await asyncio.gather(*(_within(need, probes[need]) for need in needs))
    return Capabilities(found=dict(zip(needs, reasons, strict=True)))


async def _within(need: str, probe: Probe) -> str | None:
    try:
        async with asyncio.timeout(_TIMEOUT):
            return await probe()
    except TimeoutError:
        return f"`{need}` did not answer within {_TIMEOUT:.0f} seconds"


def local_probes(root: Path) -> dict[str, Probe]:
    """The probes of what belongs to the machine itself and to the folder of the run."""
    return {**code_probes(root), "debuggers": _debugpy}


async def _debugpy() -> str | None:
    found = await run_in_thread(lambda: importlib.util.find_spec("debugpy") is not None)
    return None if found else "debugpy is not installed; `pip install 'trysquare[debug]'` brings it"
