"""Deliberate mistakes in a right bot: each is found with its code, file and line, and all of them at once."""

# A mistake is a line of a table.
# ruff: noqa: E501

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.bots.incident_bot import CONTENT, FILES, write_incident_bot
from trysquare.bots.definition.check import BotCheck, check_folder

BUILD, RENDER, SYNC = f"{CONTENT}/1_knowledge_graph", f"{CONTENT}/2_render", f"{CONTENT}/3_synchronize"
RULE, RAILS = "behaviors/1_respond/3_rules/owners.json", "behaviors/1_respond/1_guardrails"
CONFIG, PAGE, PARTIAL = "bot_config.json", f"{RENDER}/templates/incident.md", "templates/actions.md"
ACTION = "base_actions/1_build_knowledge/action_config.json"
RIGHT: dict[str, Any] = {
    **FILES,
    CONFIG: {
        "name": "incident_bot",
        "behaviors": ["respond", "learn"],
        "teams": {"ops": ["ada"]},
        "gates": {"validate_rules": {"requires_clean": True}, "learn.render_output": {"policy": "auto"}},
    },
    "trigger_words.json": {"trigger_patterns": ["handle the incident"]},
    f"{RAILS}/1_required_context/key_questions.json": {"questions": ["What broke?"]},
    f"{RAILS}/2_planning/decision_criteria/depth.json": {"question": "How deep?", "options": ["thin"]},
    f"{BUILD}/build_review.json": {"name": "review", "output": "docs/review.md", "template": "review.md"},
    f"{BUILD}/review.md": "# <Title>\n\n## Causes\n",
    "behaviors/2_learn/instructions.json": {"goal": "It does not happen again."},
    "base_actions/escalate/action_config.json": {"workflow": False},
    "base_actions/escalate/instructions.json": {"instructions": ["Call the next one."]},
}


class Mistake(NamedTuple):
    what: str
    code: str
    file: str
    line: int
    changes: dict[str, Any]
    """A text is written as it is; a pair replaces the first text by the second; None leaves the file out."""


def text_of(path: str) -> str:
    content = RIGHT[path]
    return content if isinstance(content, str) else json.dumps(content, indent=2)


def swap(what: str, code: str, path: str, old: str, new: str, line: int, *, at: str | None = None) -> Mistake:
    assert old in text_of(path), old
    return Mistake(what, code, at or path, line, {path: text_of(path).replace(old, new, 1)})


def add(what: str, code: str, path: str, content: Any, *, at: str | None = None, line: int = 1) -> Mistake:
    return Mistake(what, code, at or path, line, {path: content})


BUILT, RENDERED, BACK = (
    f"{BUILD}/build_incident.json",
    f"{RENDER}/render_incident.json",
    f"{SYNC}/synchronize_incident.json",
)
ANY: dict[str, Any] = {"description": "A rule."}


def ruled(what: str, code: str, line: int, **scanner: Any) -> Mistake:
    examples: dict[str, Any] = {"do": {"examples": ["fine"]}, "dont": {"examples": ["bad"]}}
    return add(
        what, code, RULE, {**ANY, "scanner": {"kind": "regex", "pattern": "bad", **scanner}, **examples}, line=line
    )


MISTAKES = [
    # Of the review.
    swap("a missing comma", "not_json", CONFIG, '"incident_bot",', '"incident_bot"', 3),
    swap("a key twice", "duplicate_key", CONFIG, '"name": "incident_bot"', '"name": "a",\n  "name": "incident_bot"', 3),
    swap("a misspelled key of the bot", "unknown_key", CONFIG, '"teams"', '"teamz"', 7),
    swap("a misspelled key of a gate", "unknown_key", CONFIG, '"requires_clean"', '"require_clean"', 14),
    swap("a policy that is none", "invalid_value", CONFIG, '"auto"', '"automatic"', 17),
    swap("a gate of an unknown action", "unknown_name", CONFIG, '"validate_rules"', '"validate"', 13),
    swap("a gate of an unknown behavior", "unknown_name", CONFIG, "learn.render", "lern.render", 16),
    swap("an unknown behavior", "unknown_name", CONFIG, '"learn"', '"lern"', 5),
    swap("a behavior twice", "duplicate_name", CONFIG, '"learn"\n', '"learn",\n    "respond"\n', 3),
    swap("behaviors in another order", "wrong_order", CONFIG, '"respond",\n    "learn"', '"learn",\n    "respond"', 3),
    swap("a behavior that is not listed", "not_listed", CONFIG, ',\n    "learn"', "", 1, at="behaviors/2_learn"),
    swap("a name that no tool can have", "invalid_name", CONFIG, '"incident_bot"', '"Incident-Bot"', 2),
    add("an action without its config", "missing_file", "base_actions/5_finish/instructions.json", {"instructions": "x"},
        at="base_actions/5_finish"),
    add("an action named otherwise than its folder", "wrong_name", ACTION, {"workflow": True, "name": "built"}, line=3),
    add("a next action that does not follow", "wrong_order", ACTION, {"next_action": "validate_rules"}, line=2),
    add("a next action that is unknown", "unknown_name", ACTION, {"next_action": "validat"}, line=2),
    add("a policy of an independent action", "invalid_value", "base_actions/escalate/action_config.json",
        {"workflow": False, "policy": "auto"}, line=2),
    swap("a template that is not there", "missing_file", BUILT, '"template": "incident.yaml"', '"template": "inc.yaml"', 5),
    add("a rule without a description", "missing_key", RULE, {"scanner": None}),
    ruled("a kind of scanner that is none", "invalid_value", 3, kind="regexp", applies_to="file"),
    ruled("an expression that is none", "invalid_value", 5, pattern="(", applies_to="file"),
    ruled("a rule that misses its own example", "rule_example", 15, pattern="worse", applies_to="file"),
    ruled("a rule that reports its own do example", "rule_example", 10, pattern="bad|fine", applies_to="file"),
    swap("a misspelled key of key_questions", "unknown_key", f"{RAILS}/1_required_context/key_questions.json",
         '"questions"', '"qestions"', 2),
    swap("a misspelled key of trigger words", "unknown_key", "trigger_words.json", "trigger_patterns", "triger_patterns", 2),
    add("a misspelled folder", "unknown_folder", "behaviors/1_respond/4_gardrails/x.json", {}, at="behaviors/1_respond/4_gardrails"),
    swap("an input that nobody builds", "unbuilt_input", RENDERED, '"input": "incident.yaml"', '"input": "incidents.yaml"', 4),
    add("an action without instructions", "no_instructions", "base_actions/2_render_output/instructions.json", None,
        at="base_actions/2_render_output/action_config.json"),
    swap("a section that is not closed", "invalid_template", PAGE, "{{/timeline}}", "", 9),
    # New ones.
    swap("a partial that is not there", "unknown_partial", PAGE, "{{>actions}}", "{{>action_list}}", 15),
    swap("a section that is closed and not open", "invalid_template", PAGE, "{{#timeline}}", "", 11),
    swap("sections that overlap", "invalid_template", PARTIAL, "{{/done}}{{^done}}", "{{^done}}", 3),
    swap("a tag without its end", "invalid_template", PAGE, "{{title}}", "{{title", 1),
    swap("other delimiters", "invalid_template", PAGE, "{{impact}}", "{{=<% %>=}}", 5),
    swap("a name with a space", "invalid_template", PAGE, "{{impact}}", "{{the impact}}", 5),
    swap("a partial that includes itself", "invalid_template", PARTIAL, "{{/actions}}", "{{/actions}}\n{{>actions}}", 4),
    swap("an unknown name in a page", "unknown_name_in_template", PAGE, "{{severity}}", "{{severty}}", 3),
    swap("an unknown name in a section", "unknown_name_in_template", PAGE, "{{at}}", "{{when}}", 10),
    swap("an unknown name in a partial", "unknown_name_in_template", PARTIAL, "{{what}}", "{{wat}}", 2),
    swap("a type that is none", "unknown_name", BUILT, '"name": "incident",', '"name": "incident",\n  "type": "yml",', 3),
    swap("a format that is unknown", "unknown_format", BUILT, '"output": "incident.yaml"', '"output": "incident.toml"', 4),
    swap("an output outside of the project", "invalid_value", BUILT, '"path": "docs"', '"path": "../docs"', 3),
    swap("a star in a folder", "invalid_value", BUILT, '"output": "incident.yaml"', '"output": "*/incident.yaml"', 4),
    swap("a document without a shape", "invalid_value", f"{BUILD}/build_review.json", ',\n  "template": "review.md"', "", 1),
    swap("a schema that is none", "invalid_schema", f"{BUILD}/incident.schema.json", '"type": "object"', '"type": "objekt"', 1),
    swap("a template that is not YAML", "not_parsed", f"{BUILD}/incident.yaml", "severity: high", "severity: [", 5),
    swap("a template that breaks its schema", "template_schema", f"{BUILD}/incident.yaml", "    what: Roll back\n", "", 9),
    add("two documents of one name", "duplicate_name", f"{BUILD}/build_zebra.json",
        {"name": "incident", "output": "docs/z.yaml", "template": "incident.yaml"}, line=2),
    swap("a page over its document", "same_output", RENDERED, '"output": "incident.md"', '"output": "review.md"', 5),
    add("two pages in one file", "same_output", f"{RENDER}/render_other.json",
        {"name": "other", "path": "docs", "input": "incident.yaml", "output": "incident.md", "template": "other.md"},
        line=5)._replace(changes={
            f"{RENDER}/render_other.json": {"name": "other", "path": "docs", "input": "incident.yaml",
                                            "output": "incident.md", "template": "other.md"},
            f"{RENDER}/templates/other.md": "# {{title}}\n"}),
    swap("a builder that the type does not have", "unknown_name", RENDERED, '"template": "incident.md"',
         '"builder": "story_map_svg"', 6),
    swap("neither template nor builder", "invalid_value", RENDERED, ',\n  "template": "incident.md"', "", 1),
    swap("one page for each without names", "invalid_value", RENDERED, '"input"', '"each": "$.actions[*]",\n  "input"', 1),
    swap("a synchronization of an unknown page", "unknown_name", BACK, '"incident_page"', '"incident"', 3),
    swap("a synchronization of HTML", "not_carried", RENDERED, '"incident.md",\n', '"incident.html",\n', 3, at=BACK),
    add("a file whose name is misspelled", "unused_file", f"{BUILD}/biuld_other.json", {"name": "other"}),
    add("a partial that nothing uses", "unused_file", "templates/old.md", "old\n"),
    ruled("a node that no document has", "unused_rule", 6, applies_to="story.name"),
    ruled("a node that there is not", "unknown_name", 6, applies_to="storys"),
    ruled("a path to nothing", "unknown_path", 6, applies_to="$.acitons[*].owner", document="incident"),
    ruled("a path with a wrong field", "unknown_path", 6, applies_to="$.actions[*].ownr", document="incident"),
    ruled("a path that is none", "invalid_value", 6, applies_to="$.actions["),
    ruled("a rule of an unknown document", "unknown_name", 7, applies_to="$.title", document="incidents"),
    ruled("a document for a rule of files", "unused_key", 7, applies_to="file", document="incident"),
    add("a scanner without don't examples", "untested_rule", RULE,
        {**ANY, "scanner": {"kind": "regex", "pattern": "x", "applies_to": "file"}}, line=3),
    add("a program that is not there", "missing_file", RULE,
        {**ANY, "scanner": {"kind": "command", "argv": ["no-such-program", "{files}"]}}, line=6),
    add("a scanner that is not there", "missing_file", RULE,
        {**ANY, "scanner": {"kind": "python", "callable": "no_such:scan", "applies_to": "file"}}, line=5),
    swap("a team that is unknown", "unknown_name", CONFIG, '"requires_clean": true', '"reviewers": ["@opps"]', 14),
    swap("a criterion without its question", "missing_key", f"{RAILS}/2_planning/decision_criteria/depth.json",
         '"question"', '"qestion"', 1),
    swap("every action skipped", "dead_end", CONFIG, '"validate_rules": {', '"respond": {\n      "policy": "skip"\n    },\n    "validate_rules": {', 1),
    swap("a last action that waits for the next", "dead_end", CONFIG, '"requires_clean": true', '"policy": "combine_next"', 14),
    add("two folders of one name", "duplicate_name", "behaviors/3_learn/instructions.json", {"goal": "x"}, at="behaviors"),
    add("a folder that is nearly one of the bot", "unknown_folder", "behaviours/1_a/instructions.json", {}, at="behaviours"),
]  # fmt: skip


def checked(folder: Path, changes: dict[str, Any]) -> BotCheck:
    return check_folder(write_incident_bot(folder, {**RIGHT, **changes}))


def found(check: BotCheck) -> set[tuple[str, str, int]]:
    return {(each.code, each.file, each.line) for each in check.findings}


def test_the_right_bot_has_no_finding(tmp_path: Path) -> None:
    check = checked(tmp_path, {})
    assert check.findings == ()
    assert check.workflow is not None


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda each: each.what.replace(" ", "_"))
def test_a_mistake_is_found_with_its_code_file_and_line_and_a_remedy(tmp_path: Path, mistake: Mistake) -> None:
    check = checked(tmp_path, mistake.changes)
    assert (mistake.code, mistake.file, mistake.line) in found(check), [str(each) for each in check.findings]
    assert all(each.remedy and each.message for each in check.findings)


def test_mistakes_in_different_files_are_found_all_at_once(tmp_path: Path) -> None:
    """One mistake for each file: none hides another."""
    chosen: dict[str, Mistake] = {}
    for mistake in MISTAKES:
        apart = set(mistake.changes).isdisjoint(path for each in chosen.values() for path in each.changes)
        if apart and mistake.file not in (CONFIG, "behaviors", "behaviors/2_learn") and mistake.code != "not_json":
            chosen.setdefault(mistake.what, mistake)
    check = checked(tmp_path, {path: text for each in chosen.values() for path, text in each.changes.items()})
    hidden_by_others = {"rule_example", "unused_file", "not_carried"}
    wanted = {(each.code, each.file, each.line) for each in chosen.values() if each.code not in hidden_by_others}
    assert len(wanted) >= 12
    assert wanted <= found(check), wanted - found(check)


def test_there_are_more_mistakes_than_the_review_and_thirty_new_ones() -> None:
    assert len({each.what for each in MISTAKES}) == len(MISTAKES) >= 57


def test_a_listed_action_without_instructions_is_found_where_it_is_listed(tmp_path: Path) -> None:
    config = {"name": "duty", "actions": {"prepare": {"instructions": ["Call."]}, "hand_over": {}}}
    (tmp_path / "behaviors/1_shift").mkdir(parents=True)
    (tmp_path / "behaviors/1_shift/instructions.json").write_text('{"goal": "Somebody is there."}')
    (tmp_path / "bot_config.json").write_text(json.dumps(config, indent=1))
    assert found(check_folder(tmp_path)) == {("no_instructions", "bot_config.json", 9)}
