"""Drive OpenAPI documents of a folder against a local server: `python -m benchmarks.apis FOLDER_OR_FILE …`.

Every operation is called with random valid arguments; the server checks each request against the document. Beside it
stand the tokens of what is listed, here and by FastMCP's import of the same document.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.openapi.driving import drive, grouped
from trysquare import ConfigurationError, from_openapi
from trysquare.core.tokens import count_tokens
from trysquare.openapi.document import read_document
from trysquare.server.convert import tool_to_wire

_SUFFIXES = (".json", ".yaml", ".yml")


def main(words: list[str] | None = None) -> int:
    """Print a line for each document, and each fault; 1 if there was one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.apis", description=__doc__)
    parser.add_argument("documents", nargs="+", type=Path, metavar="FOLDER_OR_FILE")
    parser.add_argument("--seed", type=int, default=0, help="other arguments for another number (default: 0)")
    arguments = parser.parse_args(words)
    logging.disable(logging.WARNING)
    return max((asyncio.run(_report(file, arguments.seed)) for file in _files(arguments.documents)), default=0)


def _files(given: Iterable[Path]) -> Iterator[Path]:
    for path in given:
        if path.is_dir():
            yield from sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES)
        else:
            yield path


async def _report(file: Path, seed: int) -> int:
    try:
        document = read_document(file).root
    except ConfigurationError as error:
        print(f"{file}: not loaded: {error}")
        return 0
    driven = await drive(document, seed=seed)
    theirs = await _tokens_of_fastmcp(document)
    print(f"{file}: {driven}; {_tokens(document)} tokens listed, {theirs} by FastMCP", flush=True)
    for each in driven.refused:
        print(f"  refused: {each}")
    for name, count in grouped(driven.faults).items():
        first = next(each for each in driven.faults if each.startswith(f"{name} "))
        print(f"  {count} faults: {first[:500]}")
    return 1 if driven.faults else 0


def _tokens(document: dict[str, Any]) -> int:
    tools = from_openapi(document, base_url="https://api.example.com").tools()
    return sum(count_tokens(json.dumps(tool_to_wire(tool, lambda each: each.description))) for tool in tools)


async def _tokens_of_fastmcp(document: dict[str, Any]) -> str:
    import httpx2
    from fastmcp import Client, FastMCP

    try:
        server: FastMCP[Any] = FastMCP.from_openapi(document, httpx2.AsyncClient(base_url="https://api.example.com"))
        async with Client(server) as client:
            tools = await client.list_tools()
    except Exception as error:  # noqa: BLE001 - whatever a peer does with a document is part of the report
        return f"not loaded ({type(error).__name__})"
    listed = (tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in tools)
    return str(sum(count_tokens(json.dumps(each)) for each in listed))


if __name__ == "__main__":
    sys.exit(main())
