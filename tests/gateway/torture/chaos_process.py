"""The server that misbehaves, as a process.

python -S -m tests.gateway.torture.chaos_process --transport stdio|http|sse --era legacy|modern --journal SOCKET
"""

from __future__ import annotations

import argparse
import signal
import sys

from tests.gateway.torture.chaos import Chaos, Journal
from tests.gateway.torture.chaos_lines import serve_http, serve_sse, serve_stdio


def main() -> None:
    """Serve as the options say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", choices=("stdio", "http", "sse"), default="stdio")
    parser.add_argument("--era", choices=("legacy", "modern"), default="legacy")
    parser.add_argument("--journal", required=True)
    parser.add_argument("--name", default="chaos")
    parser.add_argument("--fault", default="")
    parser.add_argument("--socket", type=int, default=-1, help="The number of an inherited socket that listens.")
    options = parser.parse_args()
    journal = Journal(options.journal, options.name)
    journal.tell("start")
    if options.fault == "exit":
        sys.exit("cannot read its licence")
    if options.fault == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    chaos = Chaos(journal, era=options.era, fault=options.fault)
    if options.transport == "stdio":
        serve_stdio(chaos)
    else:
        (serve_http if options.transport == "http" else serve_sse)(chaos, options.socket)


if __name__ == "__main__":
    main()
