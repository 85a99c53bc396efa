"""Search by words and meaning: what is found, what is only near, and what happens while there is no encoder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

from tests.catalog.relevance import QUERIES, TOOLS
from tests.gateway.requests.reading import Request, read_requests, read_servers
from tests.search.stand_in import CountingEncoder
from trysquare.catalog import ToolIndex
from trysquare.search import SearchIndex, Vectors, lead, split_request


def test_a_request_for_several_things_is_split_and_one_for_one_is_not() -> None:
    parts = split_request("Rename the report file, then email the report to Ada. Check the weather in Oslo?")
    assert [part.split()[0].lower() for part in parts] == ["rename", "email", "check"]
    for one in ("salt and pepper", "rename a file", "", "?!", "and then"):
        assert split_request(one) == [one]


def test_the_lead_is_the_first_sentence_that_says_something() -> None:
    assert lead("Search. Finds tools by what they do. Limits apply.") == "Search. Finds tools by what they do."
    assert lead("No full stop here") == "No full stop here"
    assert lead("") == ""


def test_the_first_answer_is_by_words_and_the_next_one_by_meaning_too() -> None:
    encoder = CountingEncoder(held=True)
    vectors = Vectors(lambda: encoder)
    index, words = ToolIndex(TOOLS, vectors=vectors), ToolIndex(TOOLS)
    for query, _ in QUERIES[:5]:
        assert index.search(query) == words.search(query)
    encoder.go.set()
    assert vectors.wait(60)
    assert index.search("a query of letters") != words.search("a query of letters")


def test_a_changed_row_is_searched_by_words_until_its_vector_is_there() -> None:
    encoder = CountingEncoder()
    vectors = Vectors(lambda: encoder)
    index = SearchIndex(vectors)
    index.put_row("lamp", [("switch the lamp", 1.0)], name="lamp", text="switch the lamp")
    list(index.rank("lamp"))
    assert vectors.wait(60)
    assert [one.id for one in index.rank("mapl")] == ["lamp"], "the letters are the same"
    encoder.go.clear()
    index.put_row("door", [("open the door", 1.0)], name="door", text="open the door")
    assert [one.id for one in index.rank("mapl")] == []
    encoder.go.set()
    assert vectors.wait(60)
    assert [one.id for one in index.rank("mapl")] == ["lamp", "door"]
    index.remove("lamp")
    assert [one.id for one in index.rank("mapl")] == ["door"]


def _confidences(groups: dict[str, str], query: str) -> dict[str, float]:
    vectors = Vectors(CountingEncoder)
    index = SearchIndex(vectors)
    for text, group in groups.items():
        index.put_row(text, [(text, 1.0)], name=text, text=text, group=group)
    list(index.rank(query))
    assert vectors.wait(60)
    return {one.id: one.confidence for one in index.rank(query)}


def test_a_row_is_surer_where_the_other_rows_of_its_group_are_near_and_no_group_changes_nothing() -> None:
    texts = {"aab": "near", "aba": "near", "baa": "near", "zaz": "far", "zzx": "far", "xxz": "far", "aaz": "alone"}
    grouped, alone = _confidences(texts, "a"), _confidences(dict.fromkeys(texts, ""), "a")
    assert _confidences(dict.fromkeys(texts, "one"), "a") == alone
    assert grouped["aab"] > alone["aab"]
    assert grouped["zaz"] < alone["zaz"]
    assert grouped["aaz"] == alone["aaz"], "it has no other rows in its group"


def test_an_encoder_that_fails_changes_nothing() -> None:
    def fail() -> CountingEncoder:
        raise ImportError("No module named 'numpy'")

    vectors = Vectors(fail)
    index, words = ToolIndex(TOOLS, vectors=vectors), ToolIndex(TOOLS)
    for query, _ in QUERIES:
        assert index.search(query) == words.search(query)
        vectors.wait(60)


def test_without_an_installed_encoder_a_search_does_not_import_numpy() -> None:
    code = """
import sys
from trysquare.catalog import ToolIndex
from trysquare.example_tools import tools
index = ToolIndex(tools.toolset().tools())
print(len(index.search("add numbers", limit=1)), "numpy" in sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert ended.stdout == "1 False\n", ended.stderr


def _index(servers: Iterable[str]) -> SearchIndex:
    index = SearchIndex()
    for server in servers:
        for one in read_servers()[server]:
            words = f"{server} {one.name}".replace("_", " ")
            index.put_row(
                f"{server}.{one.name}", [(words, 3.0), (one.description, 1.0)], name=words, text=lead(one.description)
            )
    return index


def _all_unsure(index: SearchIndex, request: Request) -> bool:
    return not any(one.likely for one in list(index.rank(request.text))[:5])


def test_leaving_one_server_out_its_requests_are_unsure_and_with_it_they_are_found() -> None:
    """No server has phrases of its own in the index, so that each is as unseen as one of yours."""
    servers, asked = list(read_servers()), [one for one in read_requests() if one.kind == "keyword"]
    everything = _index(servers)
    found = [bool({each.id for each in list(everything.rank(one.text))[:5]} & one.wanted) for one in asked]
    likely = [
        any(each.likely and each.id in one.wanted for each in list(everything.rank(one.text))[:5]) for one in asked
    ]
    assert sum(found) / len(found) >= 0.95
    assert sum(likely) / sum(found) >= 0.9
    left_out = {server: _index([one for one in servers if one != server]) for server in servers}
    unsure = [_all_unsure(left_out[next(iter(one.wanted)).partition(".")[0]], one) for one in asked]
    assert sum(unsure) / len(unsure) >= 0.4


def test_most_of_what_nothing_fits_is_unsure() -> None:
    everything = _index(read_servers())
    unsure = [_all_unsure(everything, one) for one in read_requests() if one.kind == "impossible"]
    assert sum(unsure) / len(unsure) >= 0.5
