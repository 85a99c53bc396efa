"""Fetching reaches public addresses, whatever name, number or redirect leads elsewhere."""

from __future__ import annotations

import gzip
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpcore2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.content.web_server import Answered, Asked, web_server
from trysquare import ErrorCode, ToolError
from trysquare.net import http
from trysquare.net.fetch import FetchConfig, Fetcher, FetchLimits


def hello(asked: Asked) -> Answered:
    return Answered(body=b"hello", headers={"Content-Type": "text/plain"})


async def refusal(fetcher: Fetcher, url: str) -> ToolError:
    with pytest.raises(ToolError) as raised:
        await fetcher.fetch(url)
    return raised.value


async def test_an_allowed_host_is_read() -> None:
    async with web_server(hello) as server:
        fetched = await Fetcher(FetchConfig(allow_hosts=frozenset({server.host}))).fetch(f"{server.url}/a?b=c#d")
    assert fetched.body == b"hello"
    assert server.requests[0].target == "/a?b=c"
    assert server.requests[0].headers["host"] == server.host


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "LOCALHOST", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1",
        "017700000001", "0", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::]",
    ],
)  # fmt: skip
async def test_no_way_to_write_this_machine_reaches_it(host: str) -> None:
    async with web_server(hello) as server:
        refused = await refusal(Fetcher(), f"http://{host}:{server.port}/")
        assert refused.code in (ErrorCode.FETCH_NOT_ALLOWED, ErrorCode.FETCH_FAILED)
        assert server.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://10.1.2.3/",
        "http://0xa9fea9fe/", "http://[64:ff9b::169.254.169.254]/", "http://168.63.129.16/",
    ],
)  # fmt: skip
async def test_metadata_and_private_addresses_are_refused_before_a_connection(url: str) -> None:
    refused = await refusal(Fetcher(), url)
    assert refused.code == ErrorCode.FETCH_NOT_ALLOWED
    assert "content.allow_hosts" in (refused.instruction or "")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "FILE:///etc/passwd", "ftp://example.org/", "gopher://x", "/etc/passwd", "",
        "http:///etc/passwd", "http://me:secret@example.org/", "jar:http://x!/", "http://exa mple.org/",
        "http://example.org:99999/", "http://\x00/", "http://example.org/\r\nX-Evil: 1", "http://a@b@127.0.0.1/",
        "http://example.org\\@127.0.0.1/", "http:127.0.0.1",
    ],
)  # fmt: skip
async def test_only_plain_web_addresses_are_taken(url: str) -> None:
    refused = await refusal(Fetcher(), url)
    assert refused.code == ErrorCode.FETCH_NOT_ALLOWED
    assert refused.instruction


@pytest.mark.parametrize(
    "target",
    ["file:///etc/passwd", "http://169.254.169.254/", "http://localhost:1/", "//127.0.0.2:1/", "http://2130706434:1/"],
)
async def test_a_redirect_is_checked_like_the_first_address(target: str) -> None:
    async with web_server(lambda asked: Answered(status=302, headers={"Location": target})) as server:
        fetcher = Fetcher(FetchConfig(allow_hosts=frozenset({server.host})))
        assert (await refusal(fetcher, server.url)).code == ErrorCode.FETCH_NOT_ALLOWED
        assert len(server.requests) == 1


async def test_a_redirect_to_another_page_is_followed() -> None:
    def answer(asked: Asked) -> Answered:
        return hello(asked) if asked.path == "/b" else Answered(status=301, headers={"Location": "b"})

    async with web_server(answer) as server:
        fetched = await Fetcher(FetchConfig(allow_hosts=frozenset({server.host}))).fetch(f"{server.url}/a")
        assert (fetched.url, fetched.body) == (f"{server.url}/b", b"hello")


async def test_redirects_that_go_round_end() -> None:
    async with web_server(lambda asked: Answered(status=302, headers={"Location": "/"})) as server:
        refused = await refusal(Fetcher(FetchConfig(allow_hosts=frozenset({server.host}))), server.url)
        assert "too many redirects" in refused.message
        assert len(server.requests) == 6


async def test_a_dns_answer_that_changes_after_the_check_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([["93.184.216.34"], ["127.0.0.1"]])
    connected: list[str] = []

    async def changing(host: str, port: int) -> Sequence[str]:
        return next(answers)

    async def connect(backend: object, host: str, *rest: object) -> None:
        connected.append(host)
        raise httpcore2.ConnectError("nothing leaves this machine in a test")

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect)
    fetcher = Fetcher(resolve=changing)
    assert (await refusal(fetcher, "http://rebinding.example/")).code == ErrorCode.FETCH_FAILED
    assert connected == ["93.184.216.34"], "the address that was checked must be the one that is connected to"
    assert (await refusal(fetcher, "http://rebinding.example/")).code == ErrorCode.FETCH_NOT_ALLOWED
    assert connected == ["93.184.216.34"]


async def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    async def both(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34", "10.0.0.5"]

    refused = await refusal(Fetcher(resolve=both), "http://mixed.example/")
    assert (refused.code, "10.0.0.5" in refused.message) == (ErrorCode.FETCH_NOT_ALLOWED, True)


async def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    async with web_server(hello) as server:

        async def two(host: str, port: int) -> Sequence[str]:
            return ["127.0.0.9", "127.0.0.1"]

        fetcher = Fetcher(FetchConfig(allow_hosts=frozenset({"intranet.example"})), resolve=two)
        assert (await fetcher.fetch(f"http://intranet.example:{server.port}/")).body == b"hello"


async def test_a_name_that_nobody_knows_is_told() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError("Name or service not known")

    refused = await refusal(Fetcher(resolve=unknown), "http://nowhere.example/")
    assert (refused.code, "nowhere.example" in refused.message) == (ErrorCode.FETCH_FAILED, True)


@pytest.mark.parametrize("packed", [False, True])
async def test_more_than_the_limit_is_not_read(packed: bool) -> None:
    body = gzip.compress(b"\0" * 50_000_000) if packed else b"\0" * 2000
    headers = {"Content-Encoding": "gzip"} if packed else {}
    async with web_server(lambda asked: Answered(body=body, headers=headers)) as server:
        config = FetchConfig(allow_hosts=frozenset({server.host}), limits=FetchLimits(bytes=1000))
        assert "larger than the limit of 1,000 bytes" in (await refusal(Fetcher(config), server.url)).message


async def test_packed_bytes_are_read_within_the_limit() -> None:
    def answer(asked: Asked) -> Answered:
        return Answered(body=gzip.compress(b"hello"), headers={"Content-Encoding": "gzip"})

    async with web_server(answer) as server:
        assert (await Fetcher(FetchConfig(allow_hosts=frozenset({server.host}))).fetch(server.url)).body == b"hello"


async def test_a_server_that_never_ends_is_left_in_time() -> None:
    async with web_server(lambda asked: Answered(headers={"Content-Length": "10"}, body=b"abc")) as server:
        config = FetchConfig(allow_hosts=frozenset({server.host}), limits=FetchLimits(seconds=5))
        assert (await refusal(Fetcher(config), server.url)).code == ErrorCode.FETCH_FAILED


@pytest.mark.parametrize("status", [404, 500, 304])
async def test_a_status_that_is_no_success_is_told(status: int) -> None:
    async with web_server(lambda asked: Answered(status=status)) as server:
        refused = await refusal(Fetcher(FetchConfig(allow_hosts=frozenset({server.host}))), server.url)
        assert f"status {status}" in refused.message


def certificate(folder: Path, name: str) -> tuple[Path, ssl.SSLContext]:
    """A certificate that signs itself, and a server's side that shows it."""
    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(who, who, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    shown, secret = folder / "shown.pem", folder / "secret.pem"
    shown.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    secret.write_bytes(key.private_bytes(*form))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown, secret)
    return shown, context


@pytest.mark.parametrize(("asked", "trusted", "reads"), [
    ("intranet.example", True, True), ("other.example", True, False), ("intranet.example", False, False)
])  # fmt: skip
async def test_the_certificate_must_be_for_the_name_although_the_address_was_chosen_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, trusted: bool, reads: bool
) -> None:
    shown, context = certificate(tmp_path, "intranet.example")
    trust = ssl.create_default_context(cafile=shown) if trusted else ssl.create_default_context()
    monkeypatch.setattr(http, "system_authorities", lambda: trust)

    async def here(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async with web_server(hello, tls=context) as server:
        fetcher = Fetcher(FetchConfig(allow_hosts=frozenset({asked})), resolve=here)
        url = f"https://{asked}:{server.port}/"
        if reads:
            assert (await fetcher.fetch(url)).body == b"hello"
        else:
            assert "certificate verify failed" in (await refusal(fetcher, url)).message
