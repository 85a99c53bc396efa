"""A stand-in for Notion, not Notion: it implements the documented requests that we make, with their documented limits.

It keeps pages in memory, and refuses what the documentation says is refused: a missing token or version, more than 100
blocks or 500 kB in a request, more than 2,000 characters in a rich text, more than 100 rich texts in a block, a
property that the place does not have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.content.web_server import Answered, Asked, answer_json

_CHILDREN = re.compile(r"/v1/blocks/([^/]+)/children")
_PAGE = re.compile(r"/v1/pages/([^/]+)")
LANGUAGES = {"python", "plain text", "javascript", "shell"}


def refused(status: int, code: str, message: str) -> Answered:
    return answer_json({"object": "error", "status": status, "code": code, "message": message}, status)


@dataclass(kw_only=True)
class NotionStandIn:
    """A workspace with one page and one data source."""

    token: str = "secret_1"
    page: str = "page-1"
    data_source: str = "source-1"
    properties: dict[str, str] = field(default_factory=lambda: {"Name": "title", "Tags": "multi_select"})
    pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    fail: dict[int, Answered | None] = field(default_factory=dict)
    """What to answer to the n-th request instead of the right answer; None hangs up after the work is done."""
    count: int = 0

    def answer(self, asked: Asked) -> Answered | None:
        self.count += 1
        broken = self.fail.get(self.count, ...)
        if isinstance(broken, Answered):
            return broken
        done = self._done(asked)
        return None if broken is None else done

    def _done(self, asked: Asked) -> Answered:
        if asked.headers.get("authorization") != f"Bearer {self.token}":
            return refused(401, "unauthorized", "API token is invalid.")
        if asked.headers.get("notion-version") != "2025-09-03":
            return refused(400, "missing_version", "Notion-Version header failed validation.")
        if len(asked.body) > 500_000:
            return refused(413, "validation_error", "The request body is too large.")
        if (asked.method, asked.path) == ("POST", "/v1/pages"):
            return self._create(asked.json)
        if (asked.method, asked.path) == ("GET", f"/v1/data_sources/{self.data_source}"):
            shape = {name: {"type": kind, kind: {}} for name, kind in self.properties.items()}
            return answer_json({"object": "data_source", "properties": shape})
        if (asked.method, asked.path) == ("GET", "/v1/users/me"):
            return answer_json({"object": "user", "type": "bot"})
        return self._change(asked)

    def _create(self, body: dict[str, Any]) -> Answered:
        parent, properties = body["parent"], body["properties"]
        allowed = {"title": "title"} if parent.get("page_id") == self.page else self.properties
        if self.page != parent.get("page_id") and self.data_source != parent.get("data_source_id"):
            return refused(404, "object_not_found", "Could not find the parent.")
        if set(properties) - set(allowed):
            return refused(400, "validation_error", f"{set(properties) - set(allowed)} is not a property that exists.")
        if (problem := _problem(body.get("children", []))) is not None:
            return refused(400, "validation_error", problem)
        own = f"new-{len(self.pages)}"
        self.pages[own] = {"properties": properties, "children": list(body["children"]), "in_trash": False}
        return answer_json({"object": "page", "id": own, "url": f"https://notion.example/{own}"})

    def _change(self, asked: Asked) -> Answered:
        if (children := _CHILDREN.fullmatch(asked.path)) and children[1] in self.pages:
            if (problem := _problem(asked.json["children"])) is not None:
                return refused(400, "validation_error", problem)
            self.pages[children[1]]["children"] += asked.json["children"]
            return answer_json({"object": "list", "results": []})
        if (page := _PAGE.fullmatch(asked.path)) and page[1] in self.pages:
            self.pages[page[1]]["in_trash"] = asked.json["in_trash"]
            return answer_json({"object": "page", "id": page[1]})
        return refused(404, "object_not_found", "Could not find it.")

    @property
    def live(self) -> list[dict[str, Any]]:
        """The pages that are not in the trash."""
        return [page for page in self.pages.values() if not page["in_trash"]]


def _problem(children: list[dict[str, Any]]) -> str | None:
    if len(children) > 100:
        return f"body.children.length should be ≤ 100, instead was {len(children)}."
    return next((problem for block in children if (problem := _block_problem(block))), None)


def _block_problem(block: dict[str, Any]) -> str | None:
    kind = block["type"]
    if kind == "divider":
        return None
    texts = block[kind]["rich_text"]
    if len(texts) > 100:
        return "rich_text.length should be ≤ 100."
    if kind == "code" and block[kind]["language"] not in LANGUAGES:
        return "language should be one of the known ones."
    if any(len(text["text"]["content"].encode("utf-16-le")) // 2 > 2000 for text in texts):
        return "text.content.length should be ≤ 2000."
    return None
