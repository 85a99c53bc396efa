"""The tools for `trysquare serve --tools benchmarks.peers.trysquare_tools:tools`; BENCH_TOOLS says how many."""

from __future__ import annotations

import os

from benchmarks.workload import repeat, tool_name
from trysquare import Declarations

tools = Declarations()

for number in range(int(os.environ.get("BENCH_TOOLS", "75"))):
    tools.declare(name=tool_name(number))(repeat)
