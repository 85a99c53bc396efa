"""A server that lists as many tools as its arguments say, and pages without end. Standard library only.

    python many_tools_server.py COUNT SIZE PAGE

`COUNT` tools with descriptions of `SIZE` characters, `PAGE` of them a page (0: all on one). A negative count is a list
without end whose pages are empty.
"""

from __future__ import annotations

import json
import sys
from typing import Any

COUNT, SIZE, PAGE = map(int, sys.argv[1:4])


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def page(cursor: int) -> dict[str, Any]:
    if COUNT < 0:
        return {"tools": [], "nextCursor": str(cursor + 1)}
    end = min(COUNT, cursor + PAGE) if PAGE else COUNT
    schema = {"type": "object", "properties": {"text": {"type": "string", "description": "x" * SIZE}}}
    tools = [{"name": f"tool{at}", "description": "d" * SIZE, "inputSchema": schema} for at in range(cursor, end)]
    return {"tools": tools, **({"nextCursor": str(end)} if end < COUNT else {})}


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if number is None:
            continue
        if method == "initialize":
            able, info = {"tools": {}}, {"name": "many", "version": "1"}
            version = message["params"]["protocolVersion"]
            send(id=number, result={"protocolVersion": version, "capabilities": able, "serverInfo": info})
        elif method == "tools/list":
            send(id=number, result=page(int(message["params"].get("cursor", "0"))))
        elif method == "tools/call":
            send(id=number, result={"content": [{"type": "text", "text": message["params"]["name"]}]})
        else:
            send(id=number, error={"code": -32601, "message": "Method not found"})


if __name__ == "__main__":
    main()
