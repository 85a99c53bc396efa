"""Reading: what a document's front matter says of it."""

from __future__ import annotations

import hashlib

import pytest

from trysquare.files.front_matter import FrontMatterError
from trysquare.guide.documents import Document, DocumentId, read_document

ID = DocumentId(category="lang", name="python")


def read(head: str, body: str = "body") -> Document:
    return read_document(ID, f"---\n{head}\n---\n{body}", path="lang/python.md")


def test_a_plain_text_is_an_instruction_for_the_agent():
    found = read_document(ID, "# Python")
    assert (found.text, found.type, found.first_line, found.tags) == ("# Python", "agent/instruction", 1, frozenset())
    assert found.digest == hashlib.sha256(b"# Python").hexdigest()


def test_front_matter_fills_the_document():
    found = read(
        "title: Python\ndescription: d\ninstruction: Do so.\ntype: user/information\ntags: [a, b]\n"
        "topic: t\nstance: s\npriority: 3\nrequires-workflow: true\nincludes: lang/go, lang/c\nown: [1]"
    )
    assert (found.title, found.description, found.instruction) == ("Python", "d", "Do so.")
    assert (found.type, found.tags, found.topic, found.stance) == ("user/information", {"a", "b"}, "t", "s")
    assert (found.priority, found.requires, found.includes) == (3, {"workflow": True}, ("lang/go", "lang/c"))
    assert (found.metadata, found.first_line, found.topic_line) == ({"own": [1]}, 14, 7)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("type: nonsense", "`type: nonsense` is not one of agent/information"),
        ("type: [agent/information]", "is not one of"),
        ("type: {a: b}", "is not one of"),
        ("type:", "is not one of"),
        ("tags: {a: b}", "`tags` must be a list of strings"),
        ("tags: [[a]]", "`tags` must be a list of strings"),
        ("tags: [~]", "`tags` must be a list of strings"),
        ("includes: [{a: b}]", "`includes` must be a list of strings"),
        ("priority: high", "`priority` must be an integer"),
        ("priority: true", "`priority` must be an integer"),
        ("priority: 1.5", "`priority` must be an integer"),
        ("title: [a]", "`title` must be a string"),
        ("topic: {a: b}", "`topic` must be a string"),
    ],
)
def test_values_of_another_kind_are_refused(head: str, says: str):
    with pytest.raises(FrontMatterError, match=says):
        read(head)


@pytest.mark.parametrize(
    ("head", "tags"), [("tags: a", {"a"}), ("tags: a, b,", {"a", "b"}), ("tags: [1, x]", {"1", "x"})]
)
def test_tags_can_be_a_list_or_a_line(head: str, tags: set[str]):
    assert read(head).tags == tags


def test_metadata_of_a_stored_document_gives_way_to_its_own_front_matter():
    found = read_document(ID, "---\ntitle: Own\n---\nx", source="stored", extra={"title": "Kept", "topic": "t"})
    assert (found.title, found.topic, found.topic_line, found.source) == ("Own", "t", 1, "stored")


def test_the_digest_tells_every_change_of_the_source():
    assert read("title: a").digest != read("title: b").digest
    assert read("title: a", "x").digest != read("title: a", "y").digest
