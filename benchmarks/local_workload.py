"""Twelve tools and twenty requests for a local model, as an agent on a project has them."""

from __future__ import annotations

from typing import Any

from trysquare.models import Message, ToolSpec


def _schema(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


_TEXT = {"type": "string", "maxLength": 60}
_FLAG = {"type": "boolean"}
_LIMIT = {"type": "integer", "minimum": 1, "maximum": 50}
_LEVEL = {"enum": ["debug", "info", "warning", "error"]}
_TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "read_file": ("Reads a file.", _schema(("path",), path=_TEXT)),
    "write_file": ("Writes a file.", _schema(("path", "content"), path=_TEXT, content=_TEXT)),
    "delete_file": ("Deletes a file.", _schema(("path",), path=_TEXT)),
    "list_directory": ("Lists a folder.", _schema(("path",), path=_TEXT, hidden=_FLAG)),
    "search_text": ("Searches files for a text.", _schema(("pattern",), pattern=_TEXT, ignore_case=_FLAG)),
    "run_tests": ("Runs the tests of a package.", _schema(("package",), package=_TEXT)),
    "git_status": ("Tells what changed in the working tree.", _schema()),
    "git_commit": ("Commits what is staged.", _schema(("message",), message=_TEXT)),
    "git_branch": ("Makes a branch.", _schema(("name",), name=_TEXT)),
    "read_feed": ("Reads a news feed.", _schema(("url",), url=_TEXT, limit=_LIMIT)),
    "set_log_level": ("Sets how much is logged.", _schema(("level",), level=_LEVEL)),
    "current_time": ("Tells the time.", _schema()),
}
OFFERS = tuple(
    ToolSpec(name=name, description=about, schema=schema, flat=schema) for name, (about, schema) in _TOOLS.items()
)
REQUESTS = (
    ("Show me what is in src/main.py.", "read_file"),
    ("What time is it?", "current_time"),
    ("Which files did I change since the last commit?", "git_status"),
    ("Set the log level to debug.", "set_log_level"),
    ("Run the tests of the package parser.", "run_tests"),
    ("Find every place that mentions TODO.", "search_text"),
    ("Delete the file build/old.log.", "delete_file"),
    ("List the folder docs.", "list_directory"),
    ("Make a branch named fix-login.", "git_branch"),
    ("Commit with the message: fix the login page.", "git_commit"),
    ("Read the feed at https://example.org/feed.xml.", "read_feed"),
    ("Write the word hello into notes.txt.", "write_file"),
    ("Open README.md and show it.", "read_file"),
    ("Only errors should be logged from now on.", "set_log_level"),
    ("What does the folder tests contain, hidden files too?", "list_directory"),
    ("Search for def main, whatever its case.", "search_text"),
    ("Tell me the state of the working tree.", "git_status"),
    ("Do the tests of the package api pass?", "run_tests"),
    ("Remove tmp/cache.db.", "delete_file"),
    ("Start a branch called release-2.", "git_branch"),
)


def dialogue(request: str, *, told: bool) -> tuple[Message, ...]:
    """The dialogue of a request; `told` writes the tools into it, for a model that gets them in no other way."""
    system = "You call exactly one tool for each request."
    if told:
        lines = [f"- {offer.name}({', '.join(offer.schema['properties'])}): {offer.description}" for offer in OFFERS]
        form = 'Answer with {"name":…,"args":{…}} and nothing else.'
        system = "\n".join([system, form, "Tools:", *lines])
    return (Message(role="system", text=system), Message(role="user", text=request))
