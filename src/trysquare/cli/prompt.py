"""`trysquare prompt NAME`: render a prompt of a server and print its messages."""

from __future__ import annotations

import argparse

from trysquare.cli.command import Command, option
from trysquare.cli.options import JSON, add_shared_options
from trysquare.cli.source import HEADER, open_client, print_content, take_source
from trysquare.cli.terminal import block_text, print_json, styled
from trysquare.core.errors import ConfigurationError

_ABOUT_NAME = "the prompt's name, after a SOURCE if it is not one of the settings: server.py, a URL"
_OPTIONS = (
    option("name", metavar="NAME", help=_ABOUT_NAME),
    option("arguments", metavar="ARGUMENT", nargs="*", help="the prompt's arguments as key=value pairs"),
    JSON,
    HEADER,
    add_shared_options,
)


async def prompt(arguments: argparse.Namespace) -> None:
    """Print the messages of the prompt."""
    source = take_source(arguments)
    given = dict(map(_pair, arguments.arguments))
    async with open_client(arguments, source) as client:
        found = await client.get_prompt(arguments.name, given)
    if arguments.json:
        print_json([{"role": role, "content": block_text(content)} for role, content in found.messages])
        return
    for role, content in found.messages:
        if len(found.messages) > 1:
            print(styled(f"{role}:", "bold"))
        print_content([content])


def _pair(word: str) -> tuple[str, str]:
    key, separator, value = word.partition("=")
    if not separator or not key:
        raise ConfigurationError(f"`{word}` is not KEY=VALUE.", where="the arguments", hint="Write name=Ada.")
    return key, value


COMMAND = Command(
    prompt,
    _OPTIONS,
    examples=("trysquare prompt server.py review file=main.py", "trysquare prompt review -- npx some-server"),
    option_hint="Write an argument of the prompt as {name}=VALUE.",
    takes_command=True,
)
