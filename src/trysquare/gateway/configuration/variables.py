"""Variables in a configuration: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${input:id}`, `${keyring:NAME}` and places.

What a variable stands for is filled in once and never read for variables again. One that stands for nothing is an
error with its name: a literal `${TOKEN}` must not be sent to anybody.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trysquare.core.errors import TrysquareError

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([^{}]*)\}")
_NESTED = re.compile(r"(?<!\$)\$\{[^{}]*\$\{")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

SecretLookup = Callable[[str], str | None]
"""The secret of a name, or None where there is none."""


class UnsetVariable(TrysquareError):
    """A variable stands for nothing. The text names it, says how to set it, and holds no value of any other."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reference:
    """One `${…}` in a text: `kind` is `env`, `input`, `keyring`, a place such as `userHome`, or empty."""

    written: str
    kind: str
    name: str
    default: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Variables:
    """What the variables of one configuration file stand for."""

    env: Mapping[str, str] = field(repr=False)
    secrets: SecretLookup = field(repr=False)
    workspace: Path
    input_defaults: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def fill(self, text: str) -> str:
        """The text with every variable filled in."""
        return "".join(part if isinstance(part, str) else self.value(part) for part in parts(text))

    def value(self, reference: Reference) -> str:
        """What one variable stands for; its default where it is unset or empty."""
        found = self._found(reference)
        if found or reference.default is None:
            return _checked(reference, found)
        return reference.default

    def _found(self, reference: Reference) -> str | None:
        match reference.kind:
            case "env":
                return self.env.get(reference.name)
            case "input":
                return self._input(reference.name)
            case "keyring":
                return self.secrets(reference.name)
            case place:
                return self._places()[place]

    def _input(self, name: str) -> str | None:
        """Nobody may sit at the server to be asked: an input is set, kept as a secret, or has a default."""
        given = self.env.get(input_variable(name))
        kept = self.secrets(f"input:{name}") if given is None else given
        return self.input_defaults.get(name) if kept is None else kept

    def _places(self) -> Mapping[str, str]:
        workspace = str(self.workspace)
        return {
            "userHome": self.env.get("HOME") or str(Path.home()),
            "workspaceFolder": workspace,
            "workspaceRoot": workspace,
            "workspaceFolderBasename": self.workspace.name,
            "pathSeparator": os.sep,
            "/": os.sep,
        }


_PLACES = frozenset({"userHome", "workspaceFolder", "workspaceRoot", "workspaceFolderBasename", "pathSeparator", "/"})


def input_variable(name: str) -> str:
    """The environment variable that answers an input: `INPUT_API_KEY` for `api-key`."""
    return "INPUT_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def parts(text: str) -> Iterator[str | Reference]:
    """The text in pieces: plain ones, and variables. `$${` stands for a plain `${`."""
    if nested := _NESTED.search(text):
        outer = nested.group().partition(":-")[0]
        raise UnsetVariable(
            f"`{outer}…` has a variable inside a variable, which is not filled in. Write one beside the other."
        )
    place = 0
    for found in _REFERENCE.finditer(text):
        yield text[place : found.start()]
        yield found.group(1) or _reference(found.group(), found.group(2))
        place = found.end()
    yield text[place:]


def _reference(written: str, inner: str) -> Reference:
    name, mark, default = inner.partition(":-")
    kind, colon, rest = name.partition(":")
    if not colon:
        kind, rest = (name, "") if name in _PLACES else ("env", name)
    known = kind in _PLACES or (kind in ("input", "keyring") and rest) or (kind == "env" and _NAME.fullmatch(rest))
    if not known:
        raise UnsetVariable(
            f"`${{{name}}}` is no variable that can be filled in."
            " Known are ${VAR}, ${VAR:-default}, ${env:VAR}, ${input:id}, ${keyring:NAME}, ${userHome} and"
            " ${workspaceFolder}; `$${` stands for a plain `${`."
        )
    return Reference(written=written, kind=kind, name=rest, default=default if mark else None)


def _checked(reference: Reference, found: str | None) -> str:
    if found is None:
        raise UnsetVariable(f"The variable `{reference.written}` is not set. {_way_out(reference)}")
    return found


def _way_out(reference: Reference) -> str:
    match reference.kind:
        case "input":
            variable = input_variable(reference.name)
            return f"Set {variable} in the environment, or run `trysquare gateway secret input:{reference.name}`."
        case "keyring":
            return f"Run `trysquare gateway secret {reference.name}`."
        case _:
            return f"Set {reference.name} in the environment, or give a default: `${{{reference.name}:-…}}`."
