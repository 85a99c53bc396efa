"""Settings from environment variables: `TRYSQUARE_…`, and the two names that the tool infrastructure knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from trysquare.core.errors import ConfigurationError
from trysquare.core.nearest import nearest
from trysquare.settings.keys import Key, all_keys
from trysquare.settings.origin import Given, Origin
from trysquare.settings.toml_file import resolved

CONFIG_VARIABLE = "TRYSQUARE_CONFIG"
PREFIX_VARIABLE = "MCP_TOOL_PREFIX"
EXAMPLES_VARIABLE = "MCP_INCLUDE_EXAMPLE_TOOLS"

NO_SETTINGS = frozenset({CONFIG_VARIABLE, "TRYSQUARE_TRACEBACK", "TRYSQUARE_FULL", "TRYSQUARE_STARTED_BY"})
"""Variables of ours that are no settings: which file to read, tracebacks, the size of the tests, who started us."""

EMPTY_IS_A_VALUE = frozenset({"prefix", "http.tokens", "http.oauth.issuer"})
"""Elsewhere an empty variable counts as unset, as a container's configuration often leaves it.

Who may call is different: a secret that did not arrive must not let everybody in.
"""


def environment_layer(environment: Mapping[str, str], folder: Path) -> dict[str, Given]:
    """What the environment says, key by key."""
    layer = dict(_shared_names(environment))
    by_variable = {key.variable: key for key in all_keys().values()}
    for variable, text in environment.items():
        if not variable.startswith("TRYSQUARE_") or variable in NO_SETTINGS:
            continue
        key = by_variable.get(variable)
        if key is None:
            raise _unknown(variable, by_variable)
        if text or key.name in EMPTY_IS_A_VALUE:
            layer[key.name] = _given(variable, key, text, folder)
    return layer


def _shared_names(environment: Mapping[str, str]) -> Iterator[tuple[str, Given]]:
    if (prefix := environment.get(PREFIX_VARIABLE)) is not None:
        yield "prefix", Given(value=prefix, origin=_origin(PREFIX_VARIABLE))
    if (include := environment.get(EXAMPLES_VARIABLE)) is not None:
        yield "include_example_tools", Given(value=include == "true", origin=_origin(EXAMPLES_VARIABLE))


def _given(variable: str, key: Key, text: str, folder: Path) -> Given:
    value = [part.strip() for part in text.split(",") if part.strip()] if key.is_list else text
    return Given(value=resolved(key, value, folder), origin=_origin(variable))


def _origin(variable: str) -> Origin:
    return Origin(source="environment", place=f"${variable}")


def _unknown(variable: str, known: Mapping[str, Key]) -> ConfigurationError:
    near = nearest(variable, known)
    hint = f"The nearest is ${near[0]}." if near else "`trysquare config` shows all there are."
    return ConfigurationError("there is no such setting.", where=f"${variable}", hint=hint)
