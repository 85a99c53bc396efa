#!/bin/sh
# Pins every dependency by version and hash; with UPGRADE=1 the newest that fits, else what was pinned before. The files
# name packages only, never the registry they came from.
set -eu
common="--universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet ${UPGRADE:+--upgrade}"
runtime="--extra bots --extra code --extra console --extra content --extra debug --extra gateway --extra guide --extra jobs --extra local --extra login --extra models --extra openapi"
.venv/bin/uv pip compile pyproject.toml --group build $runtime $common -o constraints/runtime.txt
.venv/bin/uv pip compile pyproject.toml --group dev --all-extras --override constraints/overrides.txt $common -o constraints/dev.txt
# The lowest version of each direct dependency. What these need in turn is the newest that fits.
.venv/bin/python scripts/oldest.py | .venv/bin/uv pip compile pyproject.toml - --all-extras --resolution lowest-direct $common -o constraints/oldest.txt
.venv/bin/uv pip compile --group docs --constraint constraints/dev.txt $common -o constraints/docs.txt
.venv/bin/uv pip compile --group node $common -o constraints/node.txt
echo elysia-ai==0.2.8 | .venv/bin/uv pip compile - $common -o constraints/elysia.txt
printf '%s\n' 'mcp>=1.30,<2' 'openai-agents>=0.24,<0.25' 'langchain-mcp-adapters>=0.3,<0.4' | .venv/bin/uv pip compile - $common -o constraints/clients.txt
printf '%s\n' 'pydantic-ai-slim[openai]>=2.66,<3' pytest | .venv/bin/uv pip compile pyproject.toml - --group build --extra local --extra code --extra models $common -o constraints/eval.txt
echo mcp-proxy==0.13.0 | .venv/bin/uv pip compile - $common -o constraints/mcp-proxy.txt
# The packages whose lines `make bench-explain` changes.
printf '%s\n' boltons==26.2.0 cachetools==8.0.0 inflection==0.5.1 intervaltree==3.2.1 isodate==0.7.2 mistune==3.4.0 more-itertools==11.2.1 schema==0.7.8 sqlparse==0.6.1 tabulate==0.10.0 tinydb==4.9.0 toolz==1.2.0 voluptuous==0.16.0 webcolors==25.10.0 xmltodict==1.0.4 | .venv/bin/uv pip compile - --no-deps $common -o constraints/explain.txt
echo bfcl-eval==2026.3.23 | .venv/bin/uv pip compile - --no-deps $common -o constraints/bfcl.txt
