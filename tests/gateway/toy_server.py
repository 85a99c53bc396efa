"""A small server for tests, with the standard library only: either era, and faults on demand.

    python toy_server.py [--era legacy|modern|mute|old] [--name NAME] …

Tools are functions of this file; each answers with text.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

Params = dict[str, Any]
STATELESS = "2026-07-28"
_META = "io.modelcontextprotocol/"
_lock = threading.Lock()


def send(message: Params) -> None:
    """Write one message."""
    line = json.dumps({"jsonrpc": "2.0", **message})
    with _lock:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def text(words: str, **more: Any) -> Params:
    """A tool's result."""
    return {"content": [{"type": "text", "text": words}], **more}


class Server:
    """One server, from its start to its end."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.calls = 0
        self.tools = ["echo", "count", "fail", "refuse", "kill", "hang", "slow", "large", "garbage", "flood", "twice"]
        self.tools += [
            "late",
            "ask",
            "sample",
            "roots",
            "progress",
            "stray",
            "pid",
            "environment",
            "change",
            "cancelled",
        ]
        self.waiting: dict[Any, Callable[[Params], None]] = {}
        self.asked = 0
        self.cancelled: list[Any] = []
        self.held: list[Any] = []
        self.subscription: Any = None
        self.subscribed: set[str] = set()
        self.client: Params = {}
        self.roots: list[Any] = []

    def run(self) -> None:
        """Answer until the input ends."""
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.waiting.pop(message["id"])(message)
            elif "id" not in message:
                self.hear(message)
            else:
                self.answer(message)

    def hear(self, message: Params) -> None:
        if message["method"] == "notifications/initialized" and "roots" in self.client:
            self.waiting["early"] = lambda answer: self.roots.append(answer.get("result"))
            send({"id": "early", "method": "roots/list", "params": {}})
        if message["method"] == "notifications/cancelled":
            self.cancelled.append(message["params"]["requestId"])
            for release in self.held:
                release()

    def answer(self, message: Params) -> None:
        method, number = message["method"], message["id"]
        if self.options.era == "mute":
            return
        if method == "server/discover" and self.options.probe == "ignore":
            return
        if method == "server/discover" and self.options.probe == "exit":
            sys.exit(3)
        found = getattr(self, "do_" + method.replace("/", "_"), None)
        modern_only = method in ("server/discover", "subscriptions/listen")
        if found is None or (modern_only and self.options.era != "modern"):
            send({"id": number, "error": {"code": -32601, "message": f"Method not found: {method}"}})
        else:
            found(number, message.get("params") or {})

    def do_server_discover(self, number: Any, params: Params) -> None:
        assert params["_meta"][_META + "protocolVersion"] == STATELESS
        result = {"supportedVersions": [STATELESS], "capabilities": self.capabilities(), "resultType": "complete"}
        result["_meta"] = {_META + "serverInfo": {"name": self.options.name, "version": "1"}}
        send({"id": number, "result": {**result, "ttlMs": 0, "cacheScope": "private"}})

    def do_initialize(self, number: Any, params: Params) -> None:
        version = "2024-11-05" if self.options.era == "old" else params["protocolVersion"]
        self.client = params["capabilities"]
        info = {"name": self.options.name, "version": "1"}
        result = {"protocolVersion": version, "capabilities": self.capabilities(), "serverInfo": info}
        send({"id": number, "result": {**result, "instructions": "Be kind."}})

    def do_resources_subscribe(self, number: Any, params: Params) -> None:
        self.subscribed.add(params["uri"])
        send({"id": number, "result": {}})

    def do_resources_unsubscribe(self, number: Any, params: Params) -> None:
        self.subscribed.discard(params["uri"])
        send({"id": number, "result": {}})

    def do_subscriptions_listen(self, number: Any, params: Params) -> None:
        self.subscription = number
        self.subscribed = set(params["notifications"].get("resourceSubscriptions", ()))
        accepted = {"notifications": params["notifications"], "_meta": {_META + "subscriptionId": number}}
        send({"method": "notifications/subscriptions/acknowledged", "params": accepted})

    def capabilities(self) -> Params:
        return {"tools": {"listChanged": True}, "resources": {"subscribe": True}}

    def do_ping(self, number: Any, params: Params) -> None:
        send({"id": number, "result": {}})

    def do_tools_list(self, number: Any, params: Params) -> None:
        if self.options.silent_list:
            return
        size = self.options.page
        begin = int(params.get("cursor", "0"))
        page = [self.definition(name) for name in self.tools[begin : begin + size]]
        result: Params = {"tools": page}
        if begin + size < len(self.tools):
            result["nextCursor"] = str(begin + size)
        if self.options.era == "modern":
            result.update(resultType="complete", ttlMs=0, cacheScope="private")
        send({"id": number, "result": result})

    def definition(self, name: str) -> Params:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        found: Params = {"name": name, "description": f"The tool {name}.", "inputSchema": schema}
        if name in ("echo", "kill"):
            found["annotations"] = {"readOnlyHint": True}
        return found

    def do_resources_list(self, number: Any, params: Params) -> None:
        send({"id": number, "result": {"resources": [{"uri": "toy://one", "name": "one"}]}})

    def do_tools_call(self, number: Any, params: Params) -> None:
        self.calls += 1
        tool = getattr(self, "tool_" + params["name"], None)
        if tool is None:
            send({"id": number, "error": {"code": -32602, "message": f"Unknown tool: {params['name']}"}})
            return
        result = tool(number, params.get("arguments") or {}, params)
        if result is not None:
            self.finish(number, result)

    def finish(self, number: Any, result: Params) -> None:
        if self.options.era == "modern":
            result.setdefault("resultType", "complete")
        send({"id": number, "result": result})

    def tool_echo(self, number: Any, arguments: Params, params: Params) -> Params:
        return text(arguments.get("text", ""))

    def tool_count(self, number: Any, arguments: Params, params: Params) -> Params:
        return text(str(self.calls))

    def tool_fail(self, number: Any, arguments: Params, params: Params) -> Params:
        return text("it failed", isError=True)

    def tool_refuse(self, number: Any, arguments: Params, params: Params) -> None:
        send({"id": number, "error": {"code": -32000, "message": "not today"}})

    def tool_kill(self, number: Any, arguments: Params, params: Params) -> None:
        os.write(2, b"about to die\n")
        os.kill(os.getpid(), signal.SIGKILL)

    def tool_hang(self, number: Any, arguments: Params, params: Params) -> None:
        return None

    def tool_freeze(self, number: Any, arguments: Params, params: Params) -> None:
        threading.Event().wait()

    def tool_slow(self, number: Any, arguments: Params, params: Params) -> None:
        """Answers when the file that it was given has been removed."""

        def wait() -> None:
            while os.path.exists(arguments["text"]):
                time.sleep(0.01)
            self.finish(number, text("slow"))

        threading.Thread(target=wait, daemon=True).start()

    def tool_large(self, number: Any, arguments: Params, params: Params) -> Params:
        return text("x" * int(arguments["text"]))

    def tool_farewell(self, number: Any, arguments: Params, params: Params) -> None:
        """Answers at length and is gone."""
        self.finish(number, self.tool_large(number, arguments, params))
        os._exit(0)

    def tool_garbage(self, number: Any, arguments: Params, params: Params) -> Params:
        with _lock:
            sys.stdout.write("Loading model...\n\n{not json}\n[]\n[1]\n{}\nnull\n")
        return text("clean")

    def tool_flood(self, number: Any, arguments: Params, params: Params) -> Params:
        for n in range(int(arguments["text"])):
            send({"method": "notifications/message", "params": {"level": "info", "data": n}})
        return text("dry")

    def tool_twice(self, number: Any, arguments: Params, params: Params) -> Params:
        self.finish(number, text("first"))
        return text("second")

    def tool_late(self, number: Any, arguments: Params, params: Params) -> None:
        """Answers once the call was cancelled."""
        self.held.append(lambda: self.finish(number, text("too late")))

    def tool_cancelled(self, number: Any, arguments: Params, params: Params) -> Params:
        return text(json.dumps(self.cancelled))

    def tool_ask(self, number: Any, arguments: Params, params: Params) -> Params | None:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        question = {"mode": "form", "message": "Who are you?", "requestedSchema": schema}
        if self.options.era == "modern":
            return self.ask_modern(params, "elicitation/create", question)
        self.request(number, "elicitation/create", question)
        return None

    def tool_sample(self, number: Any, arguments: Params, params: Params) -> Params | None:
        message = {"role": "user", "content": {"type": "text", "text": "Say hello."}}
        question = {"messages": [message], "maxTokens": 5}
        if self.options.era == "modern":
            return self.ask_modern(params, "sampling/createMessage", question)
        self.request(number, "sampling/createMessage", question)
        return None

    def tool_roots(self, number: Any, arguments: Params, params: Params) -> None:
        self.request(number, "roots/list", {})

    def ask_modern(self, params: Params, method: str, question: Params) -> Params:
        answers = params.get("inputResponses")
        if answers is None:
            asked = {"q": {"method": method, "params": question}}
            return {"resultType": "input_required", "inputRequests": asked, "requestState": f"state-{self.calls}"}
        return text(json.dumps([params["requestState"], answers["q"]]))

    def request(self, number: Any, method: str, params: Params) -> None:
        self.asked += 1
        key = f"s{self.asked}"
        self.waiting[key] = lambda answer: self.finish(
            number, text(json.dumps(answer.get("result", answer.get("error"))))
        )
        send({"id": key, "method": method, "params": params})

    def tool_progress(self, number: Any, arguments: Params, params: Params) -> Params:
        token = (params.get("_meta") or {}).get("progressToken")
        if token is not None:
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1, "total": 2}})
        return text("done" if token is not None else "no token")

    def tool_steps(self, number: Any, arguments: Params, params: Params) -> Params:
        """Tells of two steps at once, and is done."""
        for step in (1, 2):
            told = {"progressToken": params["_meta"]["progressToken"], "progress": step, "total": 2}
            send({"method": "notifications/progress", "params": told})
        return text("done")

    def tool_stray(self, number: Any, arguments: Params, params: Params) -> Params:
        """Starts a process that leaves the session."""
        code = "import time; print(flush=True); time.sleep(600)"
        command = [sys.executable, "-I", "-S", "-c", code]
        stray = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)
        assert stray.stdout is not None
        # Its environment cannot be read before it runs its own code.
        stray.stdout.readline()
        return text(str(stray.pid))

    def tool_pid(self, number: Any, arguments: Params, params: Params) -> Params:
        return text(str(os.getpid()))

    def tool_environment(self, number: Any, arguments: Params, params: Params) -> Params:
        return text(json.dumps(dict(os.environ)))

    def tool_early_roots(self, number: Any, arguments: Params, params: Params) -> Params:
        return text(json.dumps(self.roots))

    def tool_touch(self, number: Any, arguments: Params, params: Params) -> Params:
        """Tells of a change of every resource that somebody asked for."""
        for uri in self.subscribed:
            send({"method": "notifications/resources/updated", "params": {"uri": uri}})
        return text(json.dumps(sorted(self.subscribed)))

    def tool_capabilities(self, number: Any, arguments: Params, params: Params) -> Params:
        return text(json.dumps(self.client))

    def tool_change(self, number: Any, arguments: Params, params: Params) -> Params:
        self.tools.append(f"new_{len(self.tools)}")
        meta = {"_meta": {_META + "subscriptionId": self.subscription}} if self.subscription is not None else {}
        send({"method": "notifications/tools/list_changed", "params": meta})
        return text("changed")


def options_of(arguments: list[str]) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--era", default="legacy", choices=["legacy", "modern", "mute", "old"])
    parser.add_argument("--probe", default="refuse", choices=["refuse", "ignore", "exit"])
    parser.add_argument("--name", default="toy")
    parser.add_argument("--page", type=int, default=1000)
    parser.add_argument("--silent-list", action="store_true", help="Never answer a request for the tools.")
    parser.add_argument("--exit", type=int, default=None)
    parser.add_argument("--started", default=None, help="A file that gets a line at each start.")
    return parser.parse_args(arguments)


def main() -> None:
    """Serve as the options say."""
    options = options_of(sys.argv[1:])
    if options.started:
        with open(options.started, "a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
    if options.exit is not None:
        os.write(2, b"cannot read its licence\n")
        sys.exit(options.exit)
    Server(options).run()


if __name__ == "__main__":
    main()
