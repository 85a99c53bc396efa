"""A vault whose tools need consent and note in a file what really ran. As a program, it serves itself over stdio."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from trysquare import CallContext, Consent, Declarations
from trysquare.server import serve_stdio

SURE = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}


class Vault:
    """Tools, a prompt and a resource that all lead to `wipe`."""

    def __init__(self, record: Path) -> None:
        self.record = record
        self.declared = Declarations()
        declare = self.declared.declare

        @declare(consent=Consent(question="Wipe {path}?"))
        async def wipe(path: str) -> str:
            """Wipe a path."""
            return self._run(f"wipe {path}")

        @declare(consent=Consent(question="Wipe {path}?"))
        def burn(path: str) -> str:
            """Burn a path."""
            return self._run(f"burn {path}")

        @declare(consent=Consent(question="Wipe {path}?"))
        async def ask_and_wipe(path: str, context: CallContext) -> str:
            """Wipe a path after a question of its own."""
            answer = await context.ask(f"Really {path}?", SURE)
            return self._run(f"wipe {path} {answer.content.get('sure')}")

        @declare
        async def tidy(path: str, context: CallContext) -> object:
            """Have another tool do it."""
            return await context.call_tool("wipe", {"path": path})

        @self.declared.prompt
        async def wiping(path: str, context: CallContext) -> str:
            """Wipe while a prompt is made."""
            return (await context.call_tool("wipe", {"path": path})).to_text()

        @self.declared.resource("vault://{path}")
        async def wiped(path: str, context: CallContext) -> str:
            """Wipe while a resource is read."""
            return (await context.call_tool("wipe", {"path": path})).to_text()

        self.toolset = self.declared.toolset()

    @property
    def ran(self) -> list[str]:
        """What really ran, in its order."""
        return self.record.read_text(encoding="utf-8").splitlines() if self.record.exists() else []

    def _run(self, what: str) -> str:
        with self.record.open("a", encoding="utf-8") as file:
            file.write(what + "\n")
        return what


if __name__ == "__main__":
    asyncio.run(serve_stdio(Vault(Path(sys.argv[1])).toolset))
