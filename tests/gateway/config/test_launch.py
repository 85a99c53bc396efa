"""What a person is shown of how a server is started or reached: readable, and without its secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway.config.launch import display_command, display_url

SECRETS = st.from_regex(r"S3CRET[a-z0-9./+=_-]{0,20}", fullmatch=True)
FLAGS = st.sampled_from(["--token", "--api-key", "-password", "--github-token", "--client_secret", "--access-key"])
PLAIN = st.sampled_from(["run", "-y", "--port", "80", "a b", "--verbose", "https://example.com/mcp", "x=y"])


@given(flag=FLAGS, secret=SECRETS, before=st.lists(PLAIN, max_size=3), after=st.lists(PLAIN, max_size=3))
def test_what_follows_a_flag_for_secrets_is_never_shown(
    flag: str, secret: str, before: list[str], after: list[str]
) -> None:
    for args in ([flag, secret], [f"{flag}={secret}"], ["-e", f"API_KEY={secret}"], [f"Authorization: {secret}"]):
        shown = display_command("run", [*before, *args, *after], {"KEY": secret}, None)
        assert "S3CRET" not in shown
        assert shown.endswith("(with KEY)")


@given(secret=SECRETS)
def test_no_user_and_no_value_of_a_query_is_shown(secret: str) -> None:
    shown = display_url(f"https://{secret.replace('/', '')}@example.com/mcp?key={secret}&other={secret}#{secret}")
    assert shown == "https://example.com/mcp?key=***&other=***"


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (
            ["-y", "@scope/server-filesystem@1.2", "/home/ada/my files"],
            "-y @scope/server-filesystem@1.2 '/home/ada/my files'",
        ),
        (["--token", "${TOKEN}"], "--token '${TOKEN}'"),
        (["--token=${keyring:x}"], "'--token=${keyring:x}'"),
        (["--port", "8080", "--host=localhost"], "--port 8080 --host=localhost"),
        (["ghp_abcdefghijklmnopqrst"], "'***'"),
    ],
)
def test_what_is_no_secret_stays_readable(args: list[str], shown: str) -> None:
    assert display_command("run", args, {}, None) == f"run {shown}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://example.com:8443/a/b-c/mcp", "https://example.com:8443/a/b-c/mcp"),
        ("https://${HOST}/mcp?key=${KEY}", "https://${HOST}/mcp?key=***"),
        ("https://example.com/s/Zm9vYmFyYmF6cXV4MTIz/mcp", "https://example.com/s/***/mcp"),
        ("https://[half", "(invalid URL)"),
    ],
)
def test_addresses_are_shown_without_what_is_as_good_as_a_key(url: str, shown: str) -> None:
    assert display_url(url) == shown


@given(st.text(max_size=40), st.lists(st.text(max_size=20), max_size=4))
def test_whatever_is_shown_can_be_seen(url: str, args: list[str]) -> None:
    assert display_url(url).isprintable()
    assert display_command("run", args, {}, "x").isprintable()
