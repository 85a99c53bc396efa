"""Access tokens of an authorization server: what is taken, what is refused, and when keys are fetched."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.server.clients import served_http
from tests.server.sample import declared
from tests.server.test_http import connected, listing, post
from trysquare import ConfigurationError, Principal
from trysquare.server import AnyVerifier, HttpOptions, OAuthOptions, StaticTokens, StoredTokens
from trysquare.server.http.auth import InsufficientScope, TokensUnavailable, token_digest
from trysquare.server.http.jwt import KeySet, OAuthTokens

ISSUER = "https://login.example"
RESOURCE = "https://mcp.example/mcp"
ADA = f"oauth:{ISSUER}#ada"
SIGNING = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
CURVE = ec.generate_private_key(ec.SECP256R1())


def jwks(*keys: tuple[str, Any]) -> dict[str, Any]:
    """The public halves of some keys."""
    found: list[dict[str, Any]] = []
    for key_id, key in keys:
        algorithm: Any = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
        found.append({**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": key_id, "use": "sig"})
    return {"keys": found}


KEYS = jwks(("one", SIGNING), ("curve", CURVE))


def token(key: Any = SIGNING, key_id: str | None = "one", algorithm: str = "RS256", **claims: Any) -> str:
    """A token that is right, but for what is given."""
    whole = {"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "exp": time.time() + 600, **claims}
    kept = {name: value for name, value in whole.items() if value is not None}
    return jwt.encode(kept, key, algorithm=algorithm, headers=None if key_id is None else {"kid": key_id})


def verifier(keys: Mapping[str, Any] = KEYS, **options: Any) -> OAuthTokens:
    return OAuthTokens(OAuthOptions(issuer=ISSUER, **options), RESOURCE, keys=KeySet(lambda: keys))


async def test_a_right_token_names_its_subject() -> None:
    assert await verifier().verify(token()) == Principal(subject=ADA)


async def test_a_token_signed_on_a_curve_is_taken() -> None:
    assert await verifier().verify(token(CURVE, "curve", "ES256")) == Principal(subject=ADA)


@pytest.mark.parametrize("audience", [[RESOURCE, "https://else.example"], RESOURCE])
async def test_one_of_several_audiences_is_enough(audience: Any) -> None:
    assert await verifier().verify(token(aud=audience)) is not None


@pytest.mark.parametrize(
    "wrong",
    [
        token(aud="https://else.example"),
        token(aud=None),
        token(iss="https://evil.example"),
        token(iss=None),
        token(exp=time.time() - 600),
        token(exp=None),
        token(sub=None),
        # Made when tests are collected, which may be long before this one runs.
        token(nbf=time.time() + 86_400),
        token(OTHER),
        token(key_id="nobody's"),
        token(CURVE, "one", "ES256"),
        token("s" * 64, algorithm="HS256"),
        token("", algorithm="none"),
        token()[:-4] + "AAAA",
        "no.token.at-all",
        "opaque",
        "a" * 5000,
        "é",
    ],
)
async def test_a_wrong_token_is_refused(wrong: str) -> None:
    assert await verifier().verify(wrong) is None


async def test_the_public_key_is_no_secret_that_signs() -> None:
    import base64
    import hashlib
    import hmac

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = SIGNING.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def part(value: bytes) -> bytes:
        return base64.urlsafe_b64encode(value).rstrip(b"=")

    claims = {"iss": ISSUER, "aud": RESOURCE, "sub": "ada", "exp": time.time() + 600}
    signed = part(b'{"alg":"HS256","kid":"one"}') + b"." + part(json.dumps(claims).encode())
    forged = signed + b"." + part(hmac.new(public, signed, hashlib.sha256).digest())
    assert await verifier().verify(forged.decode()) is None


async def test_a_token_without_the_scopes_of_the_server_is_refused_with_their_names() -> None:
    strict = verifier(scopes=("mcp", "tools"))
    with pytest.raises(InsufficientScope) as caught:
        await strict.verify(token(scope="mcp"))
    assert caught.value.scopes == ("mcp", "tools")
    assert await strict.verify(token(scope="tools mcp other")) == Principal(subject=ADA)
    assert await strict.verify(token(scp=["tools", "mcp"])) == Principal(subject=ADA)


async def test_a_scope_can_limit_a_token_to_toolsets() -> None:
    limited = await verifier().verify(token(scope="mcp toolset:bots room:guide"))
    assert limited == Principal(subject=ADA, scopes=frozenset({"bots", "guide"}))


async def test_a_token_may_leave_out_the_key_where_there_is_only_one() -> None:
    assert await verifier(jwks(("one", SIGNING))).verify(token(key_id=None)) is not None
    assert await verifier().verify(token(key_id=None)) is None


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Source:
    """Keys that can change and fail, and a count of how often they were asked for."""

    def __init__(self, keys: Mapping[str, Any]) -> None:
        self.keys: Mapping[str, Any] | Exception = keys
        self.asked = 0

    def __call__(self) -> Mapping[str, Any]:
        self.asked += 1
        if isinstance(self.keys, Exception):
            raise self.keys
        return self.keys


async def test_keys_are_fetched_when_needed_and_not_for_every_token() -> None:
    source, clock = Source(KEYS), Clock()
    keys = KeySet(source, clock=clock)
    assert source.asked == 0
    for _ in range(5):
        assert await keys.find("one") is not None
    assert source.asked == 1
    for _ in range(5):
        assert await keys.find("unknown") is None
    assert source.asked == 1
    clock.now += 31
    assert await keys.find("unknown") is None
    assert source.asked == 2


async def test_a_new_key_is_found_once_its_id_turns_up() -> None:
    source, clock = Source(KEYS), Clock()
    keys = KeySet(source, clock=clock)
    await keys.find("one")
    source.keys = jwks(("two", OTHER))
    clock.now += 31
    assert await keys.find("two") is not None
    assert await keys.find("one") is None


async def test_known_keys_stay_while_the_issuer_is_away() -> None:
    source, clock = Source(KEYS), Clock()
    keys = KeySet(source, clock=clock)
    await keys.find("one")
    source.keys = OSError("away")
    clock.now += 3600
    assert await keys.find("one") is not None


@pytest.mark.parametrize("trouble", [OSError("away"), ValueError("no JSON")])
async def test_without_any_keys_tokens_cannot_be_checked(trouble: Exception) -> None:
    source = Source({})
    source.keys = trouble
    keys = KeySet(source)
    for _ in range(3):
        with pytest.raises(TokensUnavailable):
            await keys.find("one")
    assert source.asked == 1


@pytest.mark.parametrize(
    "options",
    [{"issuer": "http://login.example"}, {"issuer": ISSUER, "jwks": "http://keys.example/jwks"}, {"issuer": "login"}],
)
def test_an_unsafe_address_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        OAuthOptions(**options)  # pyright: ignore[reportArgumentType]


@contextmanager
def issuer(documents: dict[str, Any]) -> Generator[str]:
    """An authorization server on this machine that serves some documents."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = documents.get(self.path)
            data = json.dumps(found).encode()
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            return None

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_keys_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text(json.dumps(KEYS), encoding="utf-8")
    options = OAuthOptions(issuer=ISSUER, jwks=str(tmp_path / "keys.json"))
    assert await OAuthTokens(options, RESOURCE).verify(token()) is not None


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"keys":[{"kty":"nonsense"}]}'])
async def test_a_file_without_keys_refuses_everybody(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "keys.json").write_text(text, encoding="utf-8")
    options = OAuthOptions(issuer=ISSUER, jwks=str(tmp_path / "keys.json"))
    with pytest.raises(TokensUnavailable):
        await OAuthTokens(options, RESOURCE).verify(token())


async def test_keys_come_from_an_address() -> None:
    with issuer({"/jwks": KEYS}) as address:
        options = OAuthOptions(issuer=ISSUER, jwks=f"{address}/jwks")
        assert await OAuthTokens(options, RESOURCE).verify(token()) is not None


@pytest.mark.parametrize("path", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"])
async def test_the_issuers_metadata_name_the_address_of_its_keys(path: str) -> None:
    documents: dict[str, Any] = {"/jwks": KEYS}
    with issuer(documents) as address:
        documents[path] = {"issuer": address, "jwks_uri": f"{address}/jwks"}
        right = OAuthTokens(OAuthOptions(issuer=address), RESOURCE)
        assert await right.verify(token(iss=address)) is not None
        documents[path] = {"issuer": "https://evil.example", "jwks_uri": f"{address}/jwks"}
        with pytest.raises(TokensUnavailable):
            await OAuthTokens(OAuthOptions(issuer=address), RESOURCE).verify(token(iss=address))


async def test_a_client_with_a_token_of_the_issuer_is_served_and_others_learn_where_to_get_one() -> None:
    with issuer({"/jwks": KEYS}) as address:
        oauth = OAuthOptions(issuer=ISSUER, resource=RESOURCE, jwks=f"{address}/jwks", scopes=("mcp",))
        async with served_http(declared.toolset(), None, HttpOptions(oauth=oauth)) as base:
            async with connected(f"{base}/mcp", "auto", token=token(scope="mcp")) as client:
                result = await client.call_tool("whoami", {})
            missing = await post(f"{base}/mcp", listing())
            wrong = await post(f"{base}/mcp", listing(), Authorization="Bearer nonsense")
            poor = await post(f"{base}/mcp", listing(), Authorization=f"Bearer {token()}")
            async with httpx2.AsyncClient() as plain:
                told = await plain.get(f"{base}/.well-known/oauth-protected-resource/mcp")
    assert result.structured_content is not None
    assert result.structured_content["subject"].endswith("#ada")
    metadata_url = "https://mcp.example/.well-known/oauth-protected-resource/mcp"
    assert missing.status_code == 401
    assert missing.headers["www-authenticate"] == f'Bearer resource_metadata="{metadata_url}"'
    assert wrong.status_code == 401
    assert 'error="invalid_token"' in wrong.headers["www-authenticate"]
    assert poor.status_code == 403
    assert 'scope="mcp"' in poor.headers["www-authenticate"]
    assert told.json() == {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
        "resource_name": "trysquare",
        "scopes_supported": ["mcp"],
    }


async def test_a_server_whose_issuer_is_away_says_so_and_serves_its_own_tokens() -> None:
    oauth = OAuthOptions(issuer="http://127.0.0.1:9", resource=RESOURCE)
    http_options = HttpOptions(oauth=oauth, verifier=StaticTokens(["own"]))
    async with served_http(declared.toolset(), None, http_options) as base:
        away = await post(f"{base}/mcp", listing(), Authorization=f"Bearer {token()}")
        own = await post(f"{base}/mcp", listing(), Authorization="Bearer own")
    assert (away.status_code, own.status_code) == (503, 200)


async def test_a_stored_token_is_looked_up_by_its_digest_and_remembered_for_a_moment() -> None:
    clock, asked = Clock(), list[str]()
    known = {token_digest("right"): Principal(subject="ada")}

    def find(digest: str) -> Principal | None:
        asked.append(digest)
        return known.get(digest)

    stored = StoredTokens(find, remember=2.0, clock=clock)
    assert await stored.verify("right") == Principal(subject="ada")
    known.clear()
    assert await stored.verify("right") == Principal(subject="ada")
    clock.now += 2
    assert await stored.verify("right") is None
    assert await stored.verify("wrong") is None
    assert asked == [token_digest("right")] * 2 + [token_digest("wrong")]
    assert "right" not in str(vars(stored))


async def test_the_first_verifier_that_knows_a_token_decides() -> None:
    both = AnyVerifier([StaticTokens(["a"], subject="one"), StaticTokens(["a", "b"], subject="two")])
    assert await both.verify("a") == Principal(subject="fixed:one")
    assert await both.verify("b") == Principal(subject="fixed:two")
    assert await both.verify("c") is None
