"""Variables of a configuration file (`${VAR}`, `${input:}`, `${keyring:}`) and environment files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trysquare.core.errors import TrysquareError

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*?)\s*")
_COMMENT = re.compile(r"\s+#.*")


class UnusableFile(TrysquareError):
    """An environment file cannot be read. The message contains no values."""


def read_environment(path: Path) -> Mapping[str, str]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UnusableFile(f"{path}: {error.strerror or type(error).__name__}.") from None
    except UnicodeDecodeError:
        raise UnusableFile(f"{path} is not UTF-8 text.") from None
    try:
        return parse_environment(text)
    except UnusableFile as error:
        raise UnusableFile(f"{path}, {error}") from None


def parse_environment(text: str) -> Mapping[str, str]:
    """The variables of an environment file; the last of a name counts."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise UnusableFile(f"line {number} is not of the form NAME=value.")
        found[match.group(1)] = _unquoted(match.group(2))
    return found


def _unquoted(value: str) -> str:
    for quote in ('"', "'"):
        end = value.find(quote, 1)
        if value.startswith(quote) and end > 0:
            return value[1:end]
    return _COMMENT.sub("", value)


_REFERENCE = re.compile(r"\$(\$\{)|\$\{([^{}]*)\}")
_NESTED = re.compile(r"(?<!\$)\$\{[^{}]*\$\{")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

SecretLookup = Callable[[str], str | None]
"""Name -> secret, or None."""


class UnsetVariable(TrysquareError):
    """A variable is not set. A literal `${TOKEN}` must never be sent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Variables:
    """Values of the variables of one configuration file."""

    env: Mapping[str, str] = field(repr=False)
    secrets: SecretLookup = field(repr=False)
    workspace: Path
    input_defaults: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def fill(self, text: str) -> str:
        """The string with every variable replaced, once. `$${` is a literal `${`."""
        if nested := _NESTED.search(text):
            outer = nested.group().partition(":-")[0]
            raise UnsetVariable(f"`{outer}…` has a nested variable, which is not supported. Write one after the other.")
        return _REFERENCE.sub(lambda found: found[1] or self._value(found[0], found[2]), text)

    def _value(self, written: str, inner: str) -> str:
        """The value of a variable; its default if it is unset or empty."""
        name, mark, default = inner.partition(":-")
        kind, colon, rest = name.partition(":")
        if not colon:
            kind, rest = (name, "") if name in _LOCATIONS else ("env", name)
        if kind in _LOCATIONS:
            found, hint = _LOCATIONS[kind](self), ""
        elif kind == "env" and _NAME.fullmatch(rest):
            found = self.env.get(rest)
            hint = f"Set {rest} in the environment, or give a default: `${{{rest}:-…}}`."
        elif kind == "input" and rest:
            found = self._input(rest)
            hint = f"Set {input_variable(rest)} in the environment, or run `trysquare gateway secret input:{rest}`."
        elif kind == "keyring" and rest:
            found, hint = self.secrets(rest), f"Run `trysquare gateway secret {rest}`."
        else:
            raise UnsetVariable(
                f"Unknown variable `${{{name}}}`."
                " Supported: ${VAR}, ${VAR:-default}, ${env:VAR}, ${input:id}, ${keyring:NAME}, ${userHome} and"
                " ${workspaceFolder}; `$${` is a literal `${`."
            )
        if not found and mark:
            return default
        if found is None:
            raise UnsetVariable(f"Variable `{written}` is not set. {hint}")
        return found

    def _input(self, name: str) -> str | None:
        """An input is never prompted for: it is set, stored as a secret, or has a default."""
        given = self.env.get(input_variable(name))
        found = self.secrets(f"input:{name}") if given is None else given
        return self.input_defaults.get(name) if found is None else found


_LOCATIONS: Mapping[str, Callable[[Variables], str]] = {
    "userHome": lambda given: given.env.get("HOME") or str(Path.home()),
    "workspaceFolder": lambda given: str(given.workspace),
    "workspaceRoot": lambda given: str(given.workspace),
    "workspaceFolderBasename": lambda given: given.workspace.name,
    "pathSeparator": lambda given: os.sep,
    "/": lambda given: os.sep,
}


def input_variable(name: str) -> str:
    """The environment variable of an input: `INPUT_API_KEY` for `api-key`."""
    return "INPUT_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper()
