"""Markdown becomes blocks that Notion takes, and nothing of the text is lost."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from trysquare.content.notion import MAX_BYTES, Block, batches, markdown_blocks, pieces

TEXT = """# Bees
They **fly**, *hum* and run `sting()`.
See [more](https://b.example/a).

- honey
* wax
1. first
> said Ada
---
```py
x = "**not bold**"

y
```
#### Deep"""


def told(block: Block) -> str:
    kind = block["type"]
    if kind == "divider":
        return kind
    return f"{kind}: " + "".join(_told(text) for text in block[kind]["rich_text"])


def _told(text: dict[str, Any]) -> str:
    marks = [*text.get("annotations", {}), *([text["text"]["link"]["url"]] if "link" in text["text"] else [])]
    return text["text"]["content"] if not marks else f"<{text['text']['content']}|{','.join(marks)}>"


def plain(blocks: list[Block]) -> str:
    found = (text["text"]["content"] for block in blocks for text in block[block["type"]].get("rich_text", ()))
    return "".join(found)


def test_markdown_keeps_its_form() -> None:
    assert [told(block) for block in markdown_blocks(TEXT)] == snapshot(
        [
            "heading_1: Bees",
            """\
paragraph: They <fly|bold>, <hum|italic> and run <sting()|code>.
See <more|https://b.example/a>.\
""",
            "bulleted_list_item: honey",
            "bulleted_list_item: wax",
            "numbered_list_item: first",
            "quote: said Ada",
            "divider",
            """\
code: x = "**not bold**"

y\
""",
            "heading_3: Deep",
        ]
    )


@given(st.text(max_size=60), st.integers(1, 9))
def test_pieces_are_whole_and_within_the_limit(text: str, most: int) -> None:
    found = list(pieces(text, max(most, 2)))
    assert "".join(found) == text
    assert all(len(piece.encode("utf-16-le", "surrogatepass")) // 2 <= max(most, 2) for piece in found)


@given(
    st.lists(st.sampled_from(["word", "**b**", "*", "`", "```", "\n", "\n\n", "# ", "- ", "> ", "[x](http://y)", "🐝"]))
)
def test_any_text_becomes_blocks_with_all_its_words(parts: list[str]) -> None:
    text = "".join(parts)
    # The word behind an opening fence is the name of a language, which is not part of the text.
    assume(not re.search(r"(?m)^\s*```\s*[\w#-]*word[\w#-]*\s*$", text))
    assert plain(markdown_blocks(text)).count("word") == text.count("word")
    assert plain(markdown_blocks(text)).count("🐝") == text.count("🐝")


def test_a_long_paragraph_is_cut_into_texts_and_blocks() -> None:
    blocks = markdown_blocks("🐝" * 150_000)
    assert [len(block["paragraph"]["rich_text"]) for block in blocks] == [100, 50]
    assert plain(blocks) == "🐝" * 150_000


def test_requests_are_within_the_limits_and_in_order() -> None:
    blocks = markdown_blocks("\n\n".join(f"{n} " + "ü" * 3000 for n in range(250)))
    found = batches(blocks)
    assert [block for batch in found for block in batch] == blocks
    assert all(
        len(batch) <= 100 and len(json.dumps(batch, ensure_ascii=False).encode()) < MAX_BYTES * 1.2 for batch in found
    )


def test_text_full_of_marks_takes_no_long_time() -> None:
    for marks in ("[", "*", "`", "[a](http://", "**a", "# "):
        assert markdown_blocks(marks * (100_000 // len(marks)))
