"""Entry of one server in any client's dialect, and the table of transports."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from trysquare.core.text import closest_names
from trysquare.core.untrusted import hidden_kinds, one_line
from trysquare.files.jsonc import find
from trysquare.gateway.config.fields import Fields, InvalidEntry
from trysquare.gateway.config.file import SETTINGS_KEY, RawEntry
from trysquare.gateway.config.launch import display_command, display_url, launch_digest
from trysquare.gateway.config.variables import UnusableFile, Variables, read_environment
from trysquare.gateway.models import InvalidServer, OAuthClient, ServerConfig, ServerEntry

_SECONDS = ("timeout", "start_timeout", "idle")
_COUNTS = ("concurrency", "result_bytes", "max_line", "max_tools", "max_catalogue_bytes", "max_definition_bytes")
_CHOICES = {
    "prestart": ("auto", "always", "never"),
    "sharing": ("shared", "caller"),
    "changes": ("hold", "refuse", "accept"),
    "first_use": ("trust", "hold"),
    "protocol": ("auto", "2025-11-25"),
}
OWN_KEYS = (*_SECONDS, *_COUNTS, *_CHOICES, "redact", "pass_env", "description")
"""Keys of `x-trysquare`."""
_EXCLUDE_KEYS = ("excludeTools", "disabledTools", "disabled_tools")
_MILLISECONDS_FROM = 1000.0
_AT_LEAST_ONE = ("timeout", "start_timeout", *(name for name in _COUNTS if name != "result_bytes"))


def read_settings(fields: Fields, common: Fields | None) -> dict[str, Any]:
    """The settings of one server as fields of `ServerConfig`; its own override the common ones."""
    own = fields.inner(SETTINGS_KEY)
    shared = _own_settings(common) if common is not None else {}
    single = _own_settings(own) if own is not None else {}
    found = {**shared, **_client_settings(fields), **single}
    if passed := shared.get("pass_env", frozenset()) | single.get("pass_env", frozenset()):
        found["pass_env"] = passed
    return found


def _client_settings(fields: Fields) -> dict[str, Any]:
    excluded = (name for key in _EXCLUDE_KEYS for name in fields.texts(key) or ())
    found: dict[str, Any] = {"exclude_tools": frozenset(excluded), "include_tools": _included(fields)}
    if timeout := fields.number("timeout"):
        # Clients differ in the unit.
        found["timeout"] = timeout / 1000 if timeout >= _MILLISECONDS_FROM else timeout
    if (description := fields.text("description")) is not None:
        found["description"] = description
    return found


def _included(fields: Fields) -> frozenset[str] | None:
    member = fields.member("includeTools", "tools")
    if member is None or member.node.items is None:
        return None
    names = frozenset(fields.texts(member.name) or ())
    return None if "*" in names else names


def _own_settings(fields: Fields) -> dict[str, Any]:
    _require_known(fields)
    found: dict[str, Any] = {key: fields.number(key) for key in _SECONDS}
    found |= {key: fields.count(key) for key in _COUNTS}
    found |= {key: _choice(fields, key) for key in _CHOICES}
    found |= {key: None if (names := fields.texts(key)) is None else frozenset(names) for key in ("redact", "pass_env")}
    found["description"] = fields.text("description")
    for key in _AT_LEAST_ONE:
        if found[key] == 0:
            raise fields.wrong(fields.member(key), "must be more than zero.")
    return {key: value for key, value in found.items() if value is not None}


def _require_known(fields: Fields) -> None:
    for member in fields.node.members or ():
        if member.name not in OWN_KEYS:
            near = closest_names(member.name, OWN_KEYS)
            hint = f"Did you mean `{near[0]}`?" if near else f"Settings: {', '.join(OWN_KEYS)}."
            raise fields.wrong(member, f"is not a setting. {hint}")


def _choice(fields: Fields, key: str) -> str | None:
    chosen, known = fields.text(key), _CHOICES[key]
    if chosen is not None and chosen not in known:
        *others, last = (f'"{one}"' for one in known)
        raise fields.wrong(fields.member(key), f"must be {', '.join(others)} or {last}.")
    return chosen


COMMAND_KEYS = ("command", "server_script_path", "openapi")
_FOLDER_KEYS = ("cwd", "workingDirectory")
_INVALID_TEXT = re.compile(r"[\x00\ud800-\udfff]")


def read_process(fields: Fields, base: Path) -> dict[str, Any]:
    """A server that is started as a process; paths are relative to `base`."""
    command, args = _command_line(fields, base)
    env = {**_file_environment(fields, base), **_environment(fields)}
    _check(fields, command, args, env)
    cwd = fields.text(*_FOLDER_KEYS)
    written = fields.as_written()
    launch, names, folder = _command_line(written, base), _environment(written), written.text(*_FOLDER_KEYS)
    if launch[0] == sys.executable and written.member("command") is None:
        # Which Python runs Trysquare is no change of the server.
        launch = ("trysquare", launch[1][2:])
    return {
        "shown": display_command(*launch, names, folder),
        # Values of the environment count too: many programs run what a variable names.
        "launch_digest": launch_digest("process", launch, dict(names), folder, written.text("envFile")),
        "command": command,
        "args": args,
        "env": env,
        "cwd": None if cwd is None else str(base / Path(cwd).expanduser()),
    }


def _command_line(fields: Fields, base: Path) -> tuple[str, tuple[str, ...]]:
    """The command as text, a list, or an object with a path; a Python script; or an OpenAPI document."""
    member = fields.member("command")
    if member is None and fields.member("openapi") is not None:
        return sys.executable, ("-m", "trysquare", *_api_options(fields, base))
    if member is None:
        return "python", (str(base / (fields.text("server_script_path") or "")), *(fields.texts("args") or ()))
    if member.node.items is not None:
        command, *first = fields.texts("command") or ("",)
        return command, (*first, *(fields.texts("args") or ()))
    inner = _command_object(fields)
    if inner is not None:
        return inner.text("path", "command") or "", inner.texts("args") or ()
    return fields.text("command") or "", fields.texts("args") or ()


def _api_options(fields: Fields, base: Path) -> tuple[str, ...]:
    """The options with which an API is served from its document."""
    document = fields.text("openapi") or ""
    is_web = document.lower().startswith(("http://", "https://"))
    if not is_web and not document.lower().endswith((".json", ".yaml", ".yml")):
        raise fields.wrong(fields.member("openapi"), "must be the file or address of an OpenAPI document.")
    place = document if is_web else str(base / Path(document).expanduser())
    url = fields.text(*URL_KEYS)
    return ("serve", place, *(("--openapi-url", url) if url is not None else ()))


def _command_object(fields: Fields) -> Fields | None:
    member = fields.member("command")
    return None if member is None or member.node.members is None else fields.inner("command")


def _environment(fields: Fields) -> Mapping[str, str]:
    inner = _command_object(fields)
    return (inner.table("env") if inner is not None else None) or fields.table("env", "environment") or {}


def _file_environment(fields: Fields, base: Path) -> Mapping[str, str]:
    member, path = fields.member("envFile"), fields.text("envFile")
    if path is None:
        return {}
    try:
        return read_environment(base / Path(path).expanduser())
    except UnusableFile as error:
        raise fields.wrong(member, f"cannot be used: {error}") from None


def _check(fields: Fields, command: str, args: tuple[str, ...], env: Mapping[str, str]) -> None:
    if not command.strip():
        raise fields.wrong(fields.member("command"), "is empty.")
    if any(_INVALID_TEXT.search(text) for text in (command, *args, *env, *env.values())):
        raise fields.wrong(None, "The command line or its environment has invalid characters.")
    if any(not name or "=" in name for name in env):
        raise fields.wrong(fields.member("env", "environment"), "has an empty name, or one with `=`.")


URL_KEYS = ("httpUrl", "serverUrl", "url")
_HEADER_KEYS = ("headers", "requestHeaders")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


def read_remote(fields: Fields, base: Path) -> dict[str, Any]:
    """A server that is reached by URL."""
    written = fields.as_written().text(*URL_KEYS) or ""
    return {
        "shown": display_url(written),
        "launch_digest": launch_digest("remote", written),
        "url": _url(fields),
        "headers": _headers(fields),
        "oauth": _oauth(fields),
    }


def looks_like_sse(fields: Fields) -> bool:
    """Whether the path of the URL is that of the older SSE transport."""
    if fields.member("httpUrl") is not None:
        return False
    parts = _split(fields.text(*URL_KEYS) or "")
    return parts is not None and parts.path.rstrip("/").endswith("/sse")


def _url(fields: Fields) -> str:
    url = fields.text(*URL_KEYS)
    if url is None:
        raise fields.wrong(None, "A remote server needs a `url`.")
    if _split(url) is None:
        raise fields.wrong(fields.member(*URL_KEYS), "must be an http:// or https:// URL.")
    return url


def _split(url: str) -> SplitResult | None:
    """The parts of a web URL, or None."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_web else None


def _headers(fields: Fields) -> Mapping[str, str]:
    headers = {**(fields.table(*_HEADER_KEYS) or {}), **_bearer(fields)}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise fields.wrong(fields.member(*_HEADER_KEYS), "has an invalid header name.")
        if not _HEADER_VALUE.fullmatch(value):
            raise fields.wrong(fields.member(*_HEADER_KEYS), f"has an invalid value for header `{name}`.")
    return headers


def _bearer(fields: Fields) -> Mapping[str, str]:
    """`auth` as a string is a bearer token, except "oauth"."""
    member = fields.member("auth")
    if member is None or not isinstance(member.node.value, str) or member.node.value == "oauth":
        return {}
    return {"Authorization": f"Bearer {fields.text('auth')}"}


def _oauth(fields: Fields) -> OAuthClient | None:
    member = fields.member("oauth", "auth")
    if member is None or isinstance(member.node.value, (str, bool)):
        return OAuthClient() if member is not None and member.node.value in ("oauth", True) else None
    inner = fields.inner(member.name)
    return None if inner is None else _oauth_client(inner)


def _oauth_client(inner: Fields) -> OAuthClient:
    scopes = inner.member("scopes", "scope")
    as_text = scopes is not None and isinstance(scopes.node.value, str)
    names = ("scopes", "scope")
    return OAuthClient(
        client_id=inner.text("clientId", "client_id", "CLIENT_ID"),
        client_secret=inner.text("clientSecret", "client_secret", "CLIENT_SECRET"),
        scopes=tuple((inner.text(*names) or "").split()) if as_text else inner.texts(*names) or (),
        callback_port=inner.count("callbackPort", "callback_port"),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class TransportType:
    """How entries of one transport are recognised and read. Its module is `gateway/upstream/<name>.py`."""

    name: str
    aliases: frozenset[str]
    """Values of `type` in an entry, in lower case and without `-`, `_` and blanks."""
    matches: Callable[[Fields], bool]
    """Whether an entry without a `type` is of this transport."""
    read_entry: Callable[[Fields, Path], dict[str, Any]]
    """(fields, workspace) -> how the server is started or reached, as fields of `ServerConfig`."""
    owns_process: bool = False
    """Whether the server is a child process, which inherits environment variables."""
    login_method: str | None = None
    """HTTP method of the request that triggers a login; None where there is none."""


TRANSPORTS: Mapping[str, TransportType] = {
    each.name: each
    for each in (
        TransportType(
            name="stdio",
            aliases=frozenset({"stdio", "local"}),
            matches=lambda fields: fields.member(*COMMAND_KEYS) is not None,
            read_entry=read_process,
            owns_process=True,
        ),
        TransportType(
            name="sse",
            aliases=frozenset({"sse"}),
            matches=looks_like_sse,
            read_entry=read_remote,
            login_method="GET",
        ),
        TransportType(
            name="http",
            aliases=frozenset({"http", "remote", "streamable", "streamablehttp"}),
            matches=lambda fields: fields.member(*URL_KEYS) is not None,
            read_entry=read_remote,
            login_method="POST",
        ),
    )
}
"""In the order in which an entry is matched."""
_UNSUPPORTED: Mapping[str, str] = {"headersHelper": "is not supported. Use `headers` with ${keyring:NAME}."}
_MAX_NAME = 64


def tool_name(server: str) -> str:
    """The name of a server's tool: `mcp_api_ai_mcp` for `api-ai-mcp`."""
    return f"mcp_{re.sub('[^A-Za-z0-9_]', '_', server)}"


def read_entry(raw: RawEntry, variables: Variables) -> ServerEntry | None:
    """The server of an entry: invalid if the entry is wrong, None if it is disabled."""
    try:
        fields = Fields(node=raw.node, file=raw.file, fill=variables.fill)
        _check_shape(raw, fields)
        if fields.flag("disabled") is True or fields.flag("enabled") is False:
            return None
        return _server(raw, fields, variables)
    except InvalidEntry as error:
        name = tool_name(raw.label)[:_MAX_NAME]
        return InvalidServer(name=raw.label, tool_name=name, reason=error.reason, location=error.location)


def _check_shape(raw: RawEntry, fields: Fields) -> None:
    if raw.node.members is None:
        raise fields.wrong(None, "The entry must be an object.")
    if raw.name is None:
        raise fields.wrong(None, "A list item needs a `name`.")
    if not re.search("[A-Za-z0-9]", raw.name):
        raise fields.wrong(None, "The name needs a letter from A to Z or a digit.")
    if not raw.name.isprintable() or hidden_kinds(raw.name):
        raise fields.wrong(None, "The name has hidden characters.")
    if len(tool_name(raw.name)) > _MAX_NAME:
        raise fields.wrong(None, f"The name is longer than {_MAX_NAME - len(tool_name(''))} characters.")


def _server(raw: RawEntry, fields: Fields, variables: Variables) -> ServerConfig:
    for key, problem in _UNSUPPORTED.items():
        if (member := fields.member(key)) is not None:
            raise fields.wrong(member, problem)
    transport = _transport(fields)
    launch = transport.read_entry(fields, variables.workspace)
    node = find(raw.file.root, SETTINGS_KEY)
    common = None if node is None else replace(fields, node=node, within=f"{SETTINGS_KEY}.")
    server = ServerConfig(
        name=raw.label,
        tool_name=tool_name(raw.label),
        transport=transport.name,
        location=raw.file.location(fields.node),
        **launch,
        **read_settings(fields, common),
    )
    return _with_wider_settings(server)


def _with_wider_settings(server: ServerConfig) -> ServerConfig:
    """The server with its wider settings in the pin, so that a human approves a change of them."""
    wider = [*sorted(server.pass_env), *(["changes=accept"] if server.changes == "accept" else [])]
    if not wider or (not TRANSPORTS[server.transport].owns_process and server.changes != "accept"):
        return server
    passed = f" (inherits {', '.join(sorted(server.pass_env))})" if server.pass_env else ""
    return replace(
        server, shown=one_line(server.shown + passed, 20_000), launch_digest=launch_digest(server.launch_digest, wider)
    )


def _transport(fields: Fields) -> TransportType:
    given = fields.text("type", "transport")
    if given is None:
        found = next((each for each in TRANSPORTS.values() if each.matches(fields)), None)
        if found is None:
            raise fields.wrong(None, "The entry needs a `command` to start or a `url` to connect to.")
        return found
    alias = re.sub("[-_ ]", "", given).lower()
    found = next((each for each in TRANSPORTS.values() if alias in each.aliases), None)
    if found is None:
        raise fields.wrong(fields.member("type", "transport"), f"must be one of {', '.join(TRANSPORTS)}.")
    if found.owns_process and fields.member(*COMMAND_KEYS) is None:
        raise fields.wrong(None, "A stdio server needs a `command` to start.")
    return found
