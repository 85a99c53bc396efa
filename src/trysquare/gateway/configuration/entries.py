"""One entry of a configuration file, in any client's words, as the configuration of a server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from trysquare.core.untrusted import hidden_kinds, one_line
from trysquare.gateway.configuration.fields import Fields, WrongEntry
from trysquare.gateway.configuration.launch import launch_digest
from trysquare.gateway.configuration.own_settings import read_settings
from trysquare.gateway.configuration.process import COMMAND_KEYS, read_process
from trysquare.gateway.configuration.remote import URL_KEYS, looks_like_sse, read_remote
from trysquare.gateway.configuration.shapes import SETTINGS_KEY, RawEntry
from trysquare.gateway.configuration.variables import Variables
from trysquare.gateway.server import BrokenServer, ServerConfig, ServerEntry, Transport

_TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio",
    "local": "stdio",
    "sse": "sse",
    "http": "http",
    "remote": "http",
    "streamable": "http",
    "streamablehttp": "http",
}
_UNSUPPORTED: Mapping[str, str] = {
    "headersHelper": "names a command that prints headers, which is not run. Use `headers` with ${keyring:NAME}."
}
_LONGEST_NAME = 64


def tool_name(server: str) -> str:
    """The name of a server's tool: `mcp_api_ai_mcp` for `api-ai-mcp`."""
    return f"mcp_{re.sub('[^A-Za-z0-9_]', '_', server)}"


def read_entry(raw: RawEntry, variables: Variables) -> ServerEntry | None:
    """The server of an entry; a broken one where the entry is wrong, and None where it is switched off."""
    try:
        fields = Fields(node=raw.node, file=raw.file, fill=variables.fill)
        _check_shape(raw, fields)
        if fields.flag("disabled") is True or fields.flag("enabled") is False:
            return None
        return _server(raw, fields, variables)
    except WrongEntry as error:
        name = tool_name(raw.label)[:_LONGEST_NAME]
        return BrokenServer(name=raw.label, tool_name=name, reason=error.reason, place=error.place)


def _check_shape(raw: RawEntry, fields: Fields) -> None:
    if raw.node.members is None:
        raise fields.wrong(None, "The entry must be an object.")
    if raw.name is None:
        raise fields.wrong(None, "An entry of a list needs a `name`.")
    if not re.search("[A-Za-z0-9]", raw.name):
        raise fields.wrong(None, "The name needs a letter from A to Z or a digit, because its tool is named after it.")
    if not raw.name.isprintable() or hidden_kinds(raw.name):
        raise fields.wrong(None, "The name has characters in it that do not show.")
    if len(tool_name(raw.name)) > _LONGEST_NAME:
        raise fields.wrong(None, f"The name is longer than {_LONGEST_NAME - len(tool_name(''))} characters.")


def _server(raw: RawEntry, fields: Fields, variables: Variables) -> ServerConfig:
    for key, problem in _UNSUPPORTED.items():
        if (member := fields.member(key)) is not None:
            raise fields.wrong(member, problem)
    transport, tool = _transport(fields), tool_name(raw.label)
    if transport == "stdio":
        server = read_process(raw.label, tool, fields, variables.workspace)
    else:
        server = read_remote(raw.label, tool, fields, transport)
    return _sealed(replace(server, **read_settings(fields, _common(raw, variables))))


def _sealed(server: ServerConfig) -> ServerConfig:
    """The server, pinned also by what it is let see and change: a wider setting is for a person to agree to."""
    wider = [*sorted(server.pass_env), *(["changes=accept"] if server.changes == "accept" else [])]
    if not wider or (server.transport != "stdio" and server.changes != "accept"):
        return server
    passed = f" (given {', '.join(sorted(server.pass_env))} of our environment)" if server.pass_env else ""
    return replace(
        server,
        shown=one_line(server.shown + passed, 20_000),
        launch_digest=launch_digest(server.launch_digest, wider),
    )


def _common(raw: RawEntry, variables: Variables) -> Fields | None:
    node = raw.file.common_settings()
    if node is None:
        return None
    return Fields(node=node, file=raw.file, fill=variables.fill, within=f"{SETTINGS_KEY}.")


def _transport(fields: Fields) -> Transport:
    """What the entry calls it; else what its keys tell."""
    given = fields.text("type", "transport")
    if given is not None:
        return _named_transport(fields, given)
    if fields.member(*COMMAND_KEYS) is not None:
        return "stdio"
    if fields.member(*URL_KEYS) is None:
        raise fields.wrong(None, "The entry needs a `command` to start, or a `url` to reach.")
    return "sse" if looks_like_sse(fields) else "http"


def _named_transport(fields: Fields, given: str) -> Transport:
    found = _TRANSPORTS.get(re.sub("[-_ ]", "", given).lower())
    if found is None:
        raise fields.wrong(fields.member("type", "transport"), "must be stdio, http (or streamable-http) or sse.")
    if found == "stdio" and fields.member(*COMMAND_KEYS) is None:
        raise fields.wrong(None, "A stdio server needs a `command` to start.")
    return found
