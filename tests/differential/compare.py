"""Compares what two servers answered, after a normalization that is documented here rule by rule.

1. Names: `serverInfo`, its stamp in `_meta` and the `logger` of log messages name the server, and are replaced.
2. Opaque values (`requestState`, `nextCursor`, session ids, the ids of the server's own requests) are replaced.
3. Guidance: what our results say in `_meta` beside the value of a tool, and an `outputSchema`, are left out.
4. Texts: the message and data of an error, the text of an error result and the descriptions in lists are written by
   each server. They are compared as texts: differences are listed, but none fails. Members of an error's data that the
   protocol defines (`supported`, `requested`, `requiredCapabilities`) must be equal.
5. News: notifications that belong to no request may come before or after a response. Their own order counts.
6. Defaults: an `isError` that is left out is false, and `params` that are left out are empty.
7. A body that is not a message of JSON-RPC (`{"error": "invalid_host"}`, plain text) is a text.
8. A refusal by HTTP status (400 and above) with an error -32600 without an id is like one without any message.
9. Whether a response to a POST is one JSON object or an event stream is the server's choice, and is not compared.
10. Extensions of the protocol that a server offers (`capabilities.extensions`) are left out.

Everything else must be equal: HTTP status, whether a session is opened, the order and kind of messages, ids, codes,
results, parameters of notifications and requests.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tests.differential.material import Json
from tests.differential.model import ERAS, TRANSPORTS, Era, Outcome, Transport
from tests.support import RESULT_KEY

SERVER_KEY = "io.modelcontextprotocol/serverInfo"
DEFINED_DATA = ("supported", "requested", "requiredCapabilities")
LISTED = ("tools", "prompts", "resources", "resourceTemplates")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One outcome, normalized: what must be equal, and the texts that may differ."""

    shape: Json
    texts: tuple[str, ...]

    @property
    def status(self) -> int | None:
        """The HTTP status of the last response; None over stdio."""
        return self.shape["statuses"][-1] if self.shape["statuses"] else None

    @property
    def summary(self) -> str:
        """The kinds of messages in one line: `error -32600`, `notifications/progress, result`, `nothing`."""
        if problem := self.shape["problem"]:
            return str(problem)
        return ", ".join(_kind(message) for message in self.shape["messages"]) or "nothing"


def _kind(message: Json) -> str:
    if "error" in message:
        code, of = message["error"]["code"], message["id"]
        return f"error {code}" if of == "own" else f"error {code} with {of} id"
    if "result" not in message:
        return str(message.get("method", "no message of JSON-RPC"))
    kind = "error result" if message["result"].get("isError") else "result"
    if message["result"].get("resultType") == "input_required":
        kind = "input required"
    return kind if message["id"] == "own" else f"{kind} with {message['id']} id"


def read(outcome: Outcome) -> Reading:
    """Normalize an outcome. Both servers are read by the same rules."""
    texts = [json.dumps(message) for message in outcome.messages if "jsonrpc" not in message]
    shape: Json = {
        "statuses": list(outcome.statuses),
        "opens_session": outcome.opens_session,
        "messages": [
            _message(message, outcome.sent_ids, texts) for message in outcome.messages if "jsonrpc" in message
        ],
        "news": [_message(message, outcome.sent_ids, texts) for message in outcome.news],
        "problem": outcome.problem,
    }
    return Reading(shape=shape, texts=tuple(texts))


def _message(message: Json, sent_ids: tuple[Any, ...], texts: list[str]) -> Json:
    read = dict(message)
    if "method" in read:
        if "id" in read:
            read["id"] = "of the server"
        if read["method"] == "notifications/message":
            read["params"] = {**read["params"], "logger": "server"}
        read["params"] = _without_ids(read.get("params", {}), sent_ids)
        return read
    read["id"] = _id(message, sent_ids)
    if isinstance(read.get("error"), dict):
        read["error"] = _error(read["error"], texts)
    if isinstance(read.get("result"), dict):
        read["result"] = _result(read["result"], sent_ids, texts)
    return read


def _id(message: Json, sent_ids: tuple[Any, ...]) -> str:
    found = message.get("id", "")
    if "id" not in message or found is None:
        return "null" if "id" in message else "no"
    if any(found == sent and type(found) is type(sent) for sent in sent_ids):
        return "own"
    return "another"


def _without_ids(params: Any, sent_ids: tuple[Any, ...]) -> Any:
    """Parameters or a result in which the id of a subscription, which is that of its request, is replaced."""
    key = "io.modelcontextprotocol/subscriptionId"
    if not isinstance(params, dict) or key not in (params.get("_meta") or {}):
        return params
    return {**params, "_meta": {**params["_meta"], key: "subscription"}}


def _error(error: Json, texts: list[str]) -> Json:
    data = error.get("data")
    defined = {key: data[key] for key in DEFINED_DATA if key in data} if isinstance(data, dict) else {}
    rest = {key: value for key, value in error.items() if key not in ("code", "message", "data")}
    texts.append(f"{error.get('message')} {json.dumps(data, ensure_ascii=False) if data else ''}".strip())
    return {"code": error.get("code"), **rest, **({"data": defined} if defined else {})}


def _result(result: Json, sent_ids: tuple[Any, ...], texts: list[str]) -> Json:
    read = _without_guidance(_without_names(result, sent_ids))
    if isinstance(read.get("capabilities"), dict):
        read["capabilities"] = {name: one for name, one in read["capabilities"].items() if name != "extensions"}
    if isinstance(read.get("inputRequests"), dict):
        read["inputRequests"] = {key: {"params": {}, **one} for key, one in read["inputRequests"].items()}
    if read.get("isError") is False:
        del read["isError"]
    if read.get("isError"):
        texts.extend(str(block.get("text")) for block in read["content"] if block.get("type") == "text")
        read["content"] = [{**block, "text": "a text"} if "text" in block else block for block in read["content"]]
    for name in LISTED:
        if isinstance(read.get(name), list):
            read[name] = [_listed(entry, texts) for entry in read[name]]
    if "messages" in read and "description" in read:
        texts.append(str(read.pop("description")))
    return read


def _without_names(result: Json, sent_ids: tuple[Any, ...]) -> Json:
    """The result without names and opaque values."""
    opaque = {name: name for name in ("requestState", "nextCursor", "serverInfo") if name in result}
    read = _without_ids({**result, **opaque}, sent_ids)
    if isinstance(read.get("_meta"), dict) and SERVER_KEY in read["_meta"]:
        read["_meta"] = {**read["_meta"], SERVER_KEY: "server"}
    return read


def _without_guidance(result: Json) -> Json:
    meta = result.get("_meta")
    if not isinstance(meta, dict) or RESULT_KEY not in meta:
        return result
    rest = {name: value for name, value in meta.items() if name != RESULT_KEY}
    others = {name: value for name, value in result.items() if name != "_meta"}
    return {**others, "_meta": rest} if rest else others


def _listed(entry: Json, texts: list[str]) -> Json:
    if "description" in entry:
        texts.append(str(entry["description"]))
    changed = {"description": "a text"} if "description" in entry else {}
    return {name: value for name, value in {**entry, **changed}.items() if name != "outputSchema"}


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A difference that does not fail: what our server does where the reference does something else, and why."""

    names: tuple[str, ...]
    """Patterns of `CONVERSATION / EXCHANGE`."""
    reference: str
    """A pattern of the reference's summary, see `Reading.summary`."""
    ours: tuple[str, ...]
    """Our summaries, any of which fits."""
    reason: str
    status: int | None = None
    """Our HTTP status, where there is one."""
    eras: tuple[Era, ...] = ERAS
    transports: tuple[Transport, ...] = TRANSPORTS
    is_fault: bool = False
    """Whether it is a fault to be repaired, and not a decision. It may disappear at any time."""

    def names_it(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.names)

    def fits(self, name: str, ours: Reading, theirs: Reading) -> bool:
        has_status = None in (ours.status, self.status) or ours.status == self.status
        is_ours = ours.summary in self.ours and has_status
        return self.names_it(name) and is_ours and fnmatchcase(theirs.summary, self.reference)


@dataclass(kw_only=True)
class Comparison:
    """What the comparison of two transcripts found."""

    equal: int = 0
    decided: int = 0
    faults: list[str] = field(default_factory=list[str])
    gone_faults: list[str] = field(default_factory=list[str])
    texts: list[str] = field(default_factory=list[str])
    failures: list[str] = field(default_factory=list[str])

    def line(self, title: str) -> str:
        """The counts in one line."""
        return (
            f"differential {title}: {self.equal} equal, {len(self.texts)} of them with another text; "
            f"{self.decided} differ by decision, {len(self.faults)} by a known fault, {len(self.failures)} fail"
        )


def are_alike(our: Reading, their: Reading) -> bool:
    """Whether two outcomes are equal, or refusals of which one carries no message."""
    if our.shape == their.shape:
        return True
    messages = sorted((reading.shape["messages"] for reading in (our, their)), key=len)
    bare = {"jsonrpc": "2.0", "id": "null", "error": {"code": -32600}}
    is_refused = our.status is not None and our.status >= 400 and messages == [[], [bare]]
    return is_refused and {**our.shape, "messages": []} == {**their.shape, "messages": []}


def compare(
    ours: Mapping[str, Outcome], theirs: Mapping[str, Outcome], decisions: Sequence[Decision] = ()
) -> Comparison:
    """Compare two transcripts of the same table. A decision that decides nothing fails too."""
    found = Comparison()
    used: set[int] = set()
    for name in ours:
        our, their = read(ours[name]), read(theirs[name])
        if are_alike(our, their):
            found.equal += 1
            if our.texts != their.texts:
                found.texts.append(f"{name}:\n    ours: {_shown(our.texts)}\n    reference: {_shown(their.texts)}")
            continue
        fitting = next((each for each in decisions if each.fits(name, our, their)), None)
        if fitting is None:
            found.failures.append(_difference(name, our, their))
            continue
        used.add(id(fitting))
        if fitting.is_fault:
            found.faults.append(f"{name}: {fitting.reason}")
        else:
            found.decided += 1
    for each in (each for each in decisions if id(each) not in used):
        line = f"Decides nothing, so remove it: {each.names} ({each.reason})"
        (found.gone_faults if each.is_fault else found.failures).append(line)
    return found


def _shown(texts: tuple[str, ...]) -> str:
    shown = " | ".join(texts).replace("\n", "\\n").encode("utf-8", "backslashreplace").decode()
    return shown if len(shown) <= 300 else f"{shown[:300]}…"


def _difference(name: str, our: Reading, their: Reading) -> str:
    return "\n".join([f"{name}: {_head(our)}; the reference: {_head(their)}", *_diff(their.shape, our.shape)])


def _head(reading: Reading) -> str:
    return f"{reading.status or ''} {reading.summary}".strip()


def _diff(theirs: Json, ours: Json) -> Iterator[str]:
    before, after = (json.dumps(shape, indent=1, sort_keys=True) for shape in (theirs, ours))
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "reference", "ours", n=1, lineterm="")
    for number, line in enumerate(lines):
        if number == 40:
            yield "    …"
            return
        yield f"    {line[:200]}"
