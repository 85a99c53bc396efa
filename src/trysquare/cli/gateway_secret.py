"""`trysquare gateway secret`: keep a secret for configuration files to name as `${keyring:NAME}`."""

from __future__ import annotations

import argparse
import getpass
import sys

from trysquare.core.errors import ConfigurationError
from trysquare.gateway.configuration.secrets import SystemSecrets


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `secret`."""
    parser.add_argument("name", metavar="NAME", help="what ${keyring:NAME} says; input:ID for ${input:ID}")
    parser.add_argument("--remove", action="store_true", help="forget the secret")


def run(arguments: argparse.Namespace) -> int:
    """Keep a secret that is typed or piped in, or forget one."""
    name = arguments.name
    if arguments.remove:
        gone = SystemSecrets().remove(name)
        print(f"Forgot the secret `{name}`." if gone else f"There was no secret `{name}`.")
        return 0
    value = _given(name)
    if not value:
        raise ConfigurationError("The secret is empty; nothing was kept.")
    SystemSecrets().write(name, value)
    print(f"Kept the secret `{name}`. A file names it as ${{{_reference(name)}}}.")
    return 0


def _given(name: str) -> str:
    if sys.stdin.isatty():
        return getpass.getpass(f"The secret `{name}`: ")
    return sys.stdin.read().removesuffix("\n").removesuffix("\r")


def _reference(name: str) -> str:
    return name if name.startswith("input:") else f"keyring:{name}"
