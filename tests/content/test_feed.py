"""Feeds of three kinds become one value, and strangers' XML stays harmless."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from trysquare.content.feeds import MAX_ENTRIES, Entry, Feed, NoFeed, parse_feed

RSS = b"""<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:atom="http://www.w3.org/2005/Atom">
<channel><title>Bees &amp; more</title><atom:link rel="self" href="https://b.example/rss"/>
<link>https://b.example/</link>
<item><title>Queens</title><link>/queens</link><pubDate>Tue, 10 Nov 2026 08:00:00 +0100</pubDate>
<dc:creator>Ada</dc:creator>
<description><![CDATA[<p>They <b>live</b> long.</p><script>alert(1)</script>]]></description>
</item>
<item><description>No title here</description><link>javascript:alert(1)</link><pubDate>soon</pubDate></item>
</channel></rss>"""

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Größe</title><link href="https://a.example/"/>
<entry><title type="html">&lt;b&gt;One&lt;/b&gt;</title><link rel="edit" href="https://a.example/edit"/>
<link href="https://a.example/1"/><updated>2026-11-10T08:00:00Z</updated>
<author><name>Grace</name></author><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Body</p></div></content>
</entry></feed>""".encode("utf-16")

RDF = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://r.example/"><title>Old</title>
<link>https://r.example/</link><items/></channel>
<item rdf:about="https://r.example/1"><title>First</title><link>https://r.example/1</link>
<dc:date>2026-11-10</dc:date></item></rdf:RDF>"""


def test_rss_2_is_read() -> None:
    assert parse_feed(RSS, base="https://b.example/rss") == snapshot(
        Feed(
            title="Bees & more",
            link="https://b.example/",
            entries=(
                Entry(
                    title="Queens",
                    link="https://b.example/queens",
                    published="2026-11-10T07:00:00Z",
                    author="Ada",
                    summary="They live long.",
                ),
                Entry(title="(no title)", published="soon", summary="No title here"),
            ),
        )
    )


def test_atom_is_read() -> None:
    assert parse_feed(ATOM) == snapshot(
        Feed(
            title="Größe",
            link="https://a.example/",
            entries=(
                Entry(
                    title="One",
                    link="https://a.example/1",
                    published="2026-11-10T08:00:00Z",
                    author="Grace",
                    summary="Body",
                ),
            ),
        )
    )


def test_rss_1_is_read() -> None:
    assert parse_feed(RDF) == snapshot(
        Feed(
            title="Old",
            link="https://r.example/",
            entries=(Entry(title="First", link="https://r.example/1", published="2026-11-10T00:00:00Z"),),
        )
    )


LAUGHS = b"""<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
<rss><channel><title>&c;</title></channel></rss>"""
OUTSIDE = b"""<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><rss><channel><title>&e;</title></channel></rss>"""
PARAMETER = b"""<!DOCTYPE x [<!ENTITY % e SYSTEM "http://127.0.0.1/x.dtd"> %e;]><rss><channel/></rss>"""
SUBSET = b"""<!DOCTYPE rss SYSTEM "file:///etc/passwd"><rss><channel><title>&e;</title></channel></rss>"""


@pytest.mark.parametrize("attack", [LAUGHS, OUTSIDE, PARAMETER, SUBSET])
def test_entities_are_refused(attack: bytes) -> None:
    with pytest.raises(NoFeed, match="entit"):
        parse_feed(attack)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"<html><body>Hello</body></html>", "<html>, not <rss>"),
        (b"<rss><channel>", "no element found"),
        (b"not xml", "syntax error"),
        (b"<rss>&nbsp;</rss>", "undefined entity"),
        (b"<rss>" * 100, "nested more than 64 deep"),
        (b"<rss>" + b"<a/>" * 60_000 + b"</rss>", "more than 50,000 elements"),
        (b"\x89PNG\r\n\x1a\n\0\0", "not well-formed"),
        (b'<?xml version="1.0" encoding="nonsense"?><rss/>', "encoding"),
        (b'<?xml version="1.0" encoding="utf-8"?><rss>\xff</rss>', "not well-formed"),
        (b'{"version": "https://jsonfeed.org/version/1"}', "not well-formed"),
    ],
)
def test_what_is_no_feed_is_told(data: bytes, said: str) -> None:
    with pytest.raises(NoFeed, match=said):
        parse_feed(data)


def test_a_doctype_without_entities_is_no_reason_to_refuse() -> None:
    assert parse_feed(b"<!DOCTYPE rss><rss><channel><title>T</title></channel></rss>").title == "T"


def test_only_so_many_entries_are_kept() -> None:
    data = b"<rss><channel>" + b"<item><title>x</title></item>" * 1000 + b"</channel></rss>"
    assert len(parse_feed(data).entries) == MAX_ENTRIES


def test_long_and_hidden_text_is_cut_and_shown() -> None:
    item = f"<title>a\u202eb\U000e0041c</title><description>{'x ' * 9000}</description>"
    data = f"<rss><channel><item>{item}</item></channel></rss>"
    [entry] = parse_feed(data.encode()).entries
    assert entry.title == "abc"
    assert len(entry.summary) == 500


def read_or_told(data: bytes) -> str:
    try:
        return parse_feed(data, base="https://x.example").title
    except NoFeed as error:
        return str(error)


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    assert read_or_told(data)


PIECES = [b"<rss>", b"</rss>", b"<item>", b"</item>", b"<link/>", b"<title>", b"</title>", b"<![CDATA[<p]]>"]


@given(st.lists(st.sampled_from([*PIECES, b"&lt;b", b"x", b"<channel>", b"</channel>", b"<!--", b"-->"])))
def test_no_mixture_of_feed_pieces_crashes_the_reader(pieces: list[bytes]) -> None:
    assert read_or_told(b"<rss>" + b"".join(pieces) + b"</rss>")
