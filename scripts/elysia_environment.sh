#!/bin/sh
# Makes the environment in which the tests run Elysia: its packages by version and hash, and a blank language model.
#   sh scripts/elysia_environment.sh FOLDER PYTHON
set -eu
folder=$1
# Elysia runs on 3.11 and 3.12 alone, which need not be the Python that everything else is tested with.
for python in "$2" python3.12 python3.11 ""; do
  if [ -z "$python" ]; then
    echo "Elysia needs Python 3.11 or 3.12 and neither is here, so its tests cannot run." >&2
    exit 0
  fi
  if "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null; then break; fi
done
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --only-binary :all: --no-deps --require-hashes -r constraints/elysia.txt
"$folder/bin/python" scripts/elysia_language_model.py
