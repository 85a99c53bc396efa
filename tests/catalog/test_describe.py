"""Descriptions: what a model sees of a tool and of a prompt, in each place."""

# ruff: noqa: E501 - what a model sees is shown as it is, long lines and all
from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from inline_snapshot import snapshot
from pydantic import Field

from trysquare import Consent, Example, Prompt, PromptArgument, Result, Tool, ToolArguments, prompt, tool
from trysquare.catalog.descriptions import (
    compact_description,
    full_description,
    plain_name,
    prompt_description,
    purpose_lines,
)
from trysquare.core.consent import CONSENT_MARK
from trysquare.core.prefix import prefix_name


class Remove(ToolArguments):
    path: str = Field(description="File to remove, below the project")
    mode: Literal["trash", "erase"] = Field("trash", description="Whether it can be brought back")
    reason: str | None = Field(None, description="Why, for the journal")


async def remove_file(args: Remove) -> Result[str]:
    """Remove a file.

    The folder around it stays, even when it is empty.
    """
    return Result[str].ok("removed")


REMOVE = tool(
    remove_file,
    use_when="the person wants a file gone",
    avoid_when="the file is only to be renamed",
    limits="One file a call",
    examples=(
        Example(arguments={"path": "notes/old.md"}, explanation="Puts one file into the trash"),
        Example(arguments={"path": "key.pem", "mode": "erase"}, explanation="Erases a file for good"),
    ),
    consent=Consent(question="Remove {path}?"),
)


class Paint(ToolArguments):
    colour: Literal["red", "blue"] = Field(description="Colour of the wall")
    coats: int = Field(description="How many coats", examples=[2])
    dry: bool = Field(description="Whether to wait until it is dry")


async def paint(args: Paint) -> str:
    """Paint the wall."""
    return "painted"


async def tick() -> str:
    """Tell the time."""
    return "12:00"


def test_a_list_shows_purpose_consent_when_limits_and_one_example() -> None:
    assert compact_description(REMOVE) == snapshot("""\
Remove a file.
REQUIRES EXPLICIT USER INSTRUCTION: call this only when the user has asked for it, never on your own or to try it. The user is asked before it runs, and only they can agree.
The folder around it stays, even when it is empty.
Use when: the person wants a file gone.
Not for: the file is only to be renamed.
Limits: One file a call.
Example: {"path":"notes/old.md"} (Puts one file into the trash)\
""")


def test_on_demand_the_four_sections_are_shown_in_order() -> None:
    assert full_description(REMOVE) == snapshot("""\
# remove_file

## Description

Remove a file.

REQUIRES EXPLICIT USER INSTRUCTION: call this only when the user has asked for it, never on your own or to try it. The user is asked before it runs, and only they can agree.

The folder around it stays, even when it is empty.

Use when: the person wants a file gone.

Not for: the file is only to be renamed.

Limits: One file a call.

## JSON Schema

```json
{
  "type": "object",
  "properties": {
    "path": {
      "type": "string",
      "description": "File to remove, below the project"
    },
    "mode": {
      "type": "string",
      "enum": [
        "trash",
        "erase"
      ],
      "description": "Whether it can be brought back",
      "default": "trash"
    },
    "reason": {
      "type": "string",
      "description": "Why, for the journal"
    }
  },
  "required": [
    "path"
  ],
  "additionalProperties": false
}
```

## Usage Instructions

```text
remove_file(path: string, mode: "trash" | "erase" = "trash", reason?: string)
```

## Concrete Examples

Puts one file into the trash.

```json
{"name": "remove_file", "arguments": {"path": "notes/old.md"}}
```

Erases a file for good.

```json
{"name": "remove_file", "arguments": {"path": "key.pem", "mode": "erase"}}
```
""")


@pytest.mark.parametrize("describe", [compact_description, full_description])
@pytest.mark.parametrize("literal", [True, False])
def test_every_rendering_keeps_the_words_about_consent(describe: object, literal: bool) -> None:
    gated = tool(tick, consent_literal="TICK") if literal else tool(tick, consent=Consent(question="Tick?"))
    assert callable(describe)
    text = str(describe(gated))
    assert CONSENT_MARK in text
    assert "never on your own" in text
    assert ('"TICK"' in text) == literal


def test_one_line_of_purpose_keeps_the_words_about_consent() -> None:
    assert CONSENT_MARK in " ".join(purpose_lines(REMOVE))
    assert purpose_lines(tool(tick)) == ["Tell the time."]


def test_a_warning_that_the_author_wrote_is_not_written_twice() -> None:
    told = f"Tick.\n\n{CONSENT_MARK}: only if the person says so."
    gated = tool(tick, description=told, consent=Consent(question="Tick?"))
    assert compact_description(gated).count(CONSENT_MARK) == 1
    assert full_description(gated).count(CONSENT_MARK) == 1


def test_a_warning_that_the_author_wrote_survives_the_cut_of_a_long_text() -> None:
    told = "Tick.\n\n" + "A clock ticks and tocks all day long. " * 40 + f"\n\n{CONSENT_MARK}: only if asked."
    gated = tool(tick, description=told, consent=Consent(question="Tick?"))
    assert CONSENT_MARK in compact_description(gated)
    assert len(compact_description(gated)) < 700


def test_a_deprecated_tool_says_so_first() -> None:
    old = tool(tick, deprecated="Use `tock`")
    assert compact_description(old) == "DEPRECATED: Use `tock`\nTell the time."
    assert full_description(old).startswith("# tick\n\n## Description\n\nDEPRECATED: Use `tock`\n\nTell the time.")


def test_a_long_text_is_cut_at_a_paragraph_or_a_sentence() -> None:
    by_paragraph = tool(tick, description="Tick.\n\nShort.\n\n" + "Long. " * 200)
    assert compact_description(by_paragraph) == "Tick.\nShort."
    by_sentence = compact_description(tool(tick, description="The clock ticks on. " * 100))
    assert by_sentence.endswith("ticks on.")
    assert len(by_sentence) <= 600
    without_sentences = compact_description(tool(tick, description="tick" * 400))
    assert without_sentences.endswith("…")
    assert len(without_sentences) <= 600


def test_the_full_description_holds_the_whole_text() -> None:
    told = "Tick.\n\n" + "The clock ticks on. " * 100
    assert told.strip() in full_description(tool(tick, description=told))


def test_a_tool_without_arguments_gets_usage_and_example_from_its_schema() -> None:
    assert full_description(tool(tick)) == snapshot("""\
# tick

## Description

Tell the time.

## JSON Schema

```json
{
  "type": "object",
  "properties": {},
  "additionalProperties": false
}
```

## Usage Instructions

```text
tick()
```

## Concrete Examples

A call without arguments.

```json
{"name": "tick", "arguments": {}}
```
""")


def test_an_example_is_made_of_values_that_the_schema_names() -> None:
    assert '{"colour": "red", "coats": 2, "dry": true}' in full_description(tool(paint))


def test_no_example_is_made_up_where_the_schema_names_no_value() -> None:
    examples = full_description(replace(REMOVE, metadata=tool(tick).metadata)).partition("## Concrete Examples")[2]
    assert examples == snapshot("""\


None were written, and the schema names no concrete values to make one of.
""")


def test_sections_that_the_author_wrote_are_kept_and_the_schema_is_made() -> None:
    told = """Tick.

## JSON Schema

{"written": "by hand"}

## Usage Instructions

Call it once an hour.

## Concrete Examples

tick() at noon tells 12:00
"""
    shown = full_description(tool(tick, description=told))
    assert shown == snapshot("""\
# tick

## Description

Tick.

## JSON Schema

```json
{
  "type": "object",
  "properties": {},
  "additionalProperties": false
}
```

## Usage Instructions

```text
tick()
```

```text
Call it once an hour.
```

## Concrete Examples

```text
tick() at noon tells 12:00
```
""")
    assert compact_description(tool(tick, description=told)) == "Tick."


def test_descriptions_speak_of_a_tool_by_its_name_without_prefix() -> None:
    renamed = prefix_name(REMOVE, prefix="guide")
    assert renamed.name == "guide_remove_file"
    assert plain_name(renamed) == "remove_file"
    assert full_description(renamed) == full_description(REMOVE)
    assert compact_description(renamed) == compact_description(REMOVE)


def test_a_fence_inside_a_text_does_not_end_the_fence_around_it() -> None:
    fenced = tool(tick, usage="plain ` ticks", description="Tick.\n\n## Concrete Examples\n\n```text\ntick()\n```")
    assert "```text\ntick()\n```" in full_description(fenced)


def _review(file: str, depth: str = "short") -> str:
    """Review a file.

    Args:
        file: Path of the file
        depth: short or long
    """
    return f"Review {file} ({depth})"


REVIEW = prompt(_review, name="review", examples=(("@review main.py", "Reviews one file"),))


def test_a_prompt_has_its_four_sections() -> None:
    assert prompt_description(REVIEW) == snapshot("""\
# review

## Description

Review a file.

## Conceptual Schema

```text
review(file, depth?)
  file: Path of the file
  depth: short or long
```

## Usage Instructions

```text
@review <file> [depth]
```

## Concrete Examples

Reviews one file.

```text
@review main.py
```
""")


def test_counted_arguments_of_a_prompt_are_shown_as_args() -> None:
    counted = tuple(PromptArgument(name=f"arg{number:X}") for number in range(1, 16))
    guide = Prompt(
        name="guide",
        description="Show guidelines.",
        arguments=(PromptArgument(name="command", description="What to show", required=True), *counted),
        render=REVIEW.render,
        examples=(("@guide docs python", "The documents about Python"),),
    )
    shown = prompt_description(guide)
    assert shown == snapshot("""\
# guide

## Description

Show guidelines.

## Conceptual Schema

```text
guide(command, *args)
  command: What to show
  *args: any number of words, in order
```

## Usage Instructions

```text
@guide <command> [args...]
```

## Concrete Examples

The documents about Python.

```text
@guide docs python
```
""")
    assert "arg1" not in shown


def test_a_prompt_without_arguments_is_its_own_example() -> None:
    plain = replace(REVIEW, arguments=(), examples=())
    assert prompt_description(plain).endswith("Asks for the prompt.\n\n```text\n@review\n```\n")
    assert prompt_description(replace(REVIEW, examples=())).endswith("None were written.\n")


def test_a_description_without_text_is_still_a_description() -> None:
    silent: Tool = replace(tool(tick), description="")
    assert compact_description(silent) == ""
    assert "## Description\n\nNone." in full_description(silent)
