"""The reference of everything that a bot's definition can hold, made from the models that read it.

`python -m tests.docs.bot_keys` writes the page; a test checks that it is fresh.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from trysquare.bots.definition import files

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "bot-keys.md"
HEAD = """\
# Keys of a bot's files

<!-- Made from the models by `python -m tests.docs.bot_keys`. -->

Everything that the files of [a bot's directory](bot-definition.md) can hold, each with an example. An unknown key of a
file that decides something is an error; of a file of texts it is a warning.
"""
EXAMPLES: tuple[tuple[type[BaseModel], str, dict[str, Any]], ...] = (
    (
        files.BotConfig,
        "`bot_config.json`",
        {
            "name": "incident_bot",
            "goal": "It does not happen again.",
            "behaviors": ["respond"],
            "jumps": {"reopened": "confirm"},
            "gates": {"respond.validate_rules": {"requires_clean": True, "reviewers": ["@ops"]}},
            "teams": {"ops": ["ada"]},
        },
    ),
    (files.ActionEntry, "An entry of `actions` in `bot_config.json`", {"instructions": ["Write the timeline."]}),
    (files.ActionConfig, "`base_actions/N_name/action_config.json`", {"workflow": True, "policy": "manual"}),
    (
        files.PresetEntry,
        "An entry of `presets`",
        {"description": "A small incident.", "actions": ["respond.build_knowledge"], "gates": []},
    ),
    (files.GateKeys, "A gate", {"policy": "combine_next", "budget_tokens": 4000}),
    (files.JumpKeys, "`jumps`", {"ahead": "deny", "reopened": "allow"}),
    (files.InstructionsFile, "`instructions.json`", {"goal": "A timeline.", "instructions": ["Ask who saw it first."]}),
    (files.TriggerFile, "`trigger_words.json`", {"trigger_patterns": ["something is down"]}),
    (files.QuestionsFile, "`key_questions.json`", {"questions": ["Since when?"]}),
    (files.EvidenceFile, "`evidence.json`", {"evidence": ["The log of the shop"]}),
    (files.AssumptionsFile, "`typical_assumptions.json`", {"assumptions": ["Nothing was deployed today."]}),
    (files.ActivityFile, "`recommended_human_activity.json`", {"activities": ["Call the customer."]}),
    (
        files.CriterionFile,
        "`decision_criteria/*.json`",
        {"question": "Roll back?", "options": [{"name": "yes", "outcome": "Orders of the last hour are lost."}, "no"]},
    ),
    (files.OptionEntry, "An option of a decision", {"name": "yes", "outcome": "Orders of the last hour are lost."}),
    (
        files.KnowledgeFile,
        "`build_*.json`",
        {"name": "incident", "path": "docs", "output": "incident.yaml", "template": "incident.yaml",
         "schema": "incident.schema.json"},
    ),
    (
        files.RenderFile,
        "`render_*.json`",
        {"name": "tasks", "path": "docs", "input": "incident.yaml", "each": "$.actions[*]", "output": "{{id}}.md",
         "template": "task.md"},
    ),
    (files.SynchronizeFile, "`synchronize_*.json`", {"name": "back", "render": "tasks", "carries": ["owner"]}),
    (
        files.RuleFile,
        "`rules/*.json`",
        {
            "description": "Every action has an owner.",
            "scanner": {"kind": "regex", "applies_to": "$.actions[*].owner", "pattern": "^TBD$"},
            "do": {"examples": ["Ada"]},
            "dont": {"examples": ["TBD"]},
        },
    ),
    (files.ExamplesEntry, "`do` and `dont` of a rule", {"description": "Name one person.", "examples": ["Ada"]}),
    (
        files.RegexEntry,
        "A scanner of the kind `regex`",
        {"kind": "regex", "applies_to": "$.version", "pattern": r"^\\d+\\.\\d+$", "match": "require"},
    ),
    (
        files.SchemaEntry,
        "A scanner of the kind `schema`",
        {"kind": "schema", "applies_to": "$.actions[*]", "schema": {"required": ["owner"]}},
    ),
    (
        files.PythonEntry,
        "A scanner of the kind `python`",
        {"kind": "python", "applies_to": "file", "files": ["*.md"], "callable": "team.scanners:links",
         "options": {"limit": 3}},
    ),
    (
        files.CommandEntry,
        "A scanner of the kind `command`",
        {"kind": "command", "argv": ["ruff", "check", "--output-format", "concise", "{files}"], "files": ["*.py"]},
    ),
)  # fmt: skip
"""Each model with its heading and an example that it reads."""


def page() -> str:
    """The whole page."""
    meanings = _meanings()
    return HEAD + "".join(_section(model, heading, example, meanings) for model, heading, example in EXAMPLES)


def _section(
    model: type[BaseModel], heading: str, example: dict[str, Any], meanings: dict[tuple[str, str], str]
) -> str:
    rows = "".join(
        f"| `{field.alias or name}` | {_kind(field.annotation)} | {_default(field)} "
        f"| {_meaning(model, name, meanings)} |\n"
        for name, field in model.model_fields.items()
    )
    table = f"| key | type | default | meaning |\n|---|---|---|---|\n{rows}"
    return f"\n## {heading}\n\n{table}\n```json\n{json.dumps(example, indent=2)}\n```\n"


def _meaning(model: type[BaseModel], name: str, meanings: dict[tuple[str, str], str]) -> str:
    return next(meanings[each.__name__, name] for each in model.__mro__ if (each.__name__, name) in meanings)


def _meanings() -> dict[tuple[str, str], str]:
    """The text below each field, by class and field."""
    tree = ast.parse(inspect.getsource(files))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return {(node.name, name): text for node in classes for name, text in _texts(node)}


def _texts(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for first, second in zip(node.body, node.body[1:], strict=False):
        is_field = isinstance(first, ast.AnnAssign) and isinstance(first.target, ast.Name)
        if is_field and isinstance(second, ast.Expr) and isinstance(second.value, ast.Constant):
            yield first.target.id, " ".join(str(second.value.value).split())  # pyright: ignore[reportAttributeAccessIssue]


_WORDS: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", Any: "any value"}


def _kind(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation]
    if origin is Literal:
        return " or ".join(f"`{each}`" for each in arguments)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_kind(each) for each in arguments if each is not type(None)))
    if origin is list:
        return "list" if arguments[0] is Any else f"list of {_plural(_kind(arguments[0]))}"
    if origin is dict:
        return "object" if arguments[1] is Any else f"object of {_plural(_kind(arguments[1]))}"
    if hasattr(annotation, "__metadata__"):
        return _kind(arguments[0])
    return "object" if isinstance(annotation, type) and issubclass(annotation, BaseModel) else "string"


def _plural(kind: str) -> str:
    return f"lists{kind.removeprefix('list')}" if kind.startswith("list") else f"{kind}s"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None or value in ("", [], {}):
        return "none"
    if isinstance(value, BaseModel) or not isinstance(value, (str, bool, int)):
        return "as below" if isinstance(value, BaseModel) else f"`{value}`"
    return f"`{json.dumps(value)}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
