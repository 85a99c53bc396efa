"""Instructions: what the agent does with a document, and which instruction it is."""

from __future__ import annotations

from typing import get_args

from tests.guide.contents import piece
from trysquare.guide.documents import DocumentType
from trysquare.guide.retrieval import BY_TYPE, held_digest, instruction_for, instruction_id, shared_instruction


def test_every_type_says_what_to_do():
    assert set(BY_TYPE) == set(get_args(DocumentType))
    for kind in get_args(DocumentType):
        assert instruction_for(piece("a/1", type=kind)) == BY_TYPE[kind]


def test_a_document_can_say_it_itself():
    assert instruction_for(piece("a/1", instruction="Ask first.")) == "Ask first."


def test_an_id_tells_projects_documents_and_versions_apart():
    made = {
        instruction_id(project, piece(id, digest=digest * 64))
        for project in ("one", "two")
        for id in ("a/1", "a/2")
        for digest in "ef"
    }
    assert len(made) == 8
    assert instruction_id("one", piece("a/1", digest="e" * 64)) == "one:a/1@eeeeeeeeeeee"


def test_the_digest_is_found_in_an_id_again():
    assert held_digest(instruction_id("one", piece("a/x@y", digest="e" * 64))) == "e" * 12
    assert held_digest("e" * 12) == "e" * 12


def test_documents_share_an_instruction_only_where_all_have_the_same():
    assert shared_instruction([piece("a/1"), piece("a/2")]) == BY_TYPE["agent/instruction"]
    assert shared_instruction([piece("a/1"), piece("a/2", type="user/information")]) is None
    assert shared_instruction([]) is None
