"""A bot for incidents, as a team would write it: a YAML document with a schema, a page, rules by JSONPath."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONTENT = "behaviors/1_respond/2_content"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["title", "severity", "timeline", "actions"],
    "properties": {
        "title": {"type": "string", "minLength": 1},
        "severity": {"enum": ["low", "high"]},
        "impact": {"type": "string"},
        "timeline": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["at", "what"],
                "properties": {"at": {"type": "string"}, "what": {"type": "string"}},
            },
        },
        "actions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "what"],
                "properties": {
                    "id": {"type": "string"},
                    "what": {"type": "string"},
                    "owner": {"type": "string"},
                    "done": {"type": "boolean"},
                },
                "additionalProperties": False,
            },
        },
    },
}
INCIDENT = """\
# Written while it happened.
title: Checkout is down
severity: high
impact: Nobody can pay.
timeline:
  - at: "10:02"
    what: The alarm rings.
actions:
  - id: A1
    what: Roll back
    owner: TBD
    done: false
  - id: A2
    what: Add a limit   # after the review
    owner: Ada
    done: true
"""
PAGE = """\
# {{title}}

Severity: {{severity}}

{{impact}}

## Timeline

{{#timeline}}
- {{at}}: {{what}}
{{/timeline}}

## Actions

{{>actions}}
"""
ACTIONS = """\
{{#actions}}
- [{{#done}}x{{/done}}{{^done}} {{/done}}] {{id}}: {{what}}{{#owner}} ({{owner}}){{/owner}}
{{/actions}}
"""
ACTION_NAMES = ("1_build_knowledge", "2_render_output", "3_synchronize_output", "4_validate_rules")
FILES: dict[str, Any] = {
    "bot_config.json": {"name": "incident_bot"},
    **{f"base_actions/{name}/action_config.json": {"workflow": True} for name in ACTION_NAMES},
    **{f"base_actions/{name}/instructions.json": {"instructions": ["Do it, and show it."]} for name in ACTION_NAMES},
    f"{CONTENT}/1_knowledge_graph/build_incident.json": {
        "name": "incident",
        "path": "docs",
        "output": "incident.yaml",
        "template": "incident.yaml",
        "schema": "incident.schema.json",
    },
    f"{CONTENT}/1_knowledge_graph/incident.yaml": INCIDENT,
    f"{CONTENT}/1_knowledge_graph/incident.schema.json": SCHEMA,
    f"{CONTENT}/2_render/render_incident.json": {
        "name": "incident_page",
        "path": "docs",
        "input": "incident.yaml",
        "output": "incident.md",
        "template": "incident.md",
    },
    f"{CONTENT}/2_render/templates/incident.md": PAGE,
    "templates/actions.md": ACTIONS,
    f"{CONTENT}/3_synchronize/synchronize_incident.json": {"name": "back", "render": "incident_page"},
    "behaviors/1_respond/3_rules/owners.json": {
        "description": "Every action has an owner.",
        "scanner": {"kind": "regex", "applies_to": "$.actions[*].owner", "pattern": "^(TBD|someone)$"},
        "do": {"examples": ["Ada"]},
        "dont": {"examples": ["TBD"]},
    },
}


def write_incident_bot(root: Path, changes: dict[str, Any] | None = None) -> Path:
    """Write the bot with some files changed, added, or (with None) left out."""
    for path, content in {**FILES, **(changes or {})}.items():
        if content is None:
            continue
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8")
    return root
