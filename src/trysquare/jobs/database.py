"""The database of jobs: a SQLite file, or PostgreSQL by its URL, behind one SQLAlchemy engine."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError

SQLITE = "sqlite:///"
BUSY_MILLISECONDS = 30_000
CONNECT_SECONDS = 10
_CHECKED_BYTES = 16 * 1024 * 1024
"""Files up to this size are checked whole when they are opened; it takes some milliseconds."""
_OPENING = 7_305_481_126
"""The advisory lock that one process holds on PostgreSQL while it makes tables; the number means nothing else."""


def connect(url: str) -> sa.Engine:
    """An engine on the address. Nothing is made yet, but a file that is no database, or a damaged one, is refused."""
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            _look_first(connection, url)
    except SQLAlchemyError as error:
        engine.dispose()
        raise _cannot_open(url, plain(error)) from error
    return engine


def _look_first(connection: sa.Connection, url: str) -> None:
    if not url.startswith(SQLITE):
        connection.execute(sa.text("SELECT 1"))
        return
    small = Path(url.removeprefix(SQLITE)).stat().st_size <= _CHECKED_BYTES
    found = connection.execute(sa.text("PRAGMA quick_check(1)" if small else "PRAGMA schema_version")).scalar()
    if small and found != "ok":
        raise _cannot_open(url, f"it is damaged, {found}")


def _cannot_open(url: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"The jobs cannot be opened: {why}.", where=shown(url), hint=_hint(url))


def _engine(url: str) -> sa.Engine:
    if url.startswith(SQLITE):
        return _sqlite_engine(url)
    kind, separator, rest = url.partition("://")
    if kind not in ("postgres", "postgresql") or not separator:
        raise ConfigurationError(
            "The address of the jobs is neither a file nor PostgreSQL's.",
            where=shown(url),
            hint="Use postgresql://user@host/database, or leave it out for a file in the project.",
        )
    try:
        return sa.create_engine(
            f"postgresql+psycopg://{rest}",
            pool_size=20,
            pool_pre_ping=True,
            connect_args={"connect_timeout": CONNECT_SECONDS},
        )
    except (ArgumentError, ValueError, ImportError) as error:
        raise ConfigurationError(
            f"The address of the jobs cannot be used: {error}.",
            where=shown(url),
            hint="Check the URL, and install the driver with: pip install 'trysquare[jobs]'",
        ) from error


def _sqlite_engine(url: str) -> sa.Engine:
    path = Path(url.removeprefix(SQLITE))
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise _cannot_open(url, error.strerror or str(error)) from error
    engine = sa.create_engine(url)
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # Writers queue up from their first statement on, instead of failing when they turn from reading to writing.
    connection.isolation_level = "IMMEDIATE"
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


@contextmanager
def one_opener(engine: sa.Engine, url: str) -> Generator[None]:
    """Let one process at a time make tables: others wait, and then find them made."""
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            connection.execute(sa.text(f"SELECT pg_advisory_lock({_OPENING})"))
            try:
                yield
            finally:
                connection.execute(sa.text(f"SELECT pg_advisory_unlock({_OPENING})"))
        return
    lock = os.open(url.removeprefix(SQLITE) + ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


@contextmanager
def clear_errors(url: str) -> Generator[None]:
    """Turn what the database says into an error that a person understands."""
    try:
        yield
    except SQLAlchemyError as error:
        raise ToolError(
            f"The jobs in {shown(url)} cannot be read or written: {plain(error)}.",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction=_hint(url),
        ) from error


def plain(error: Exception) -> str:
    """The database's own words, in one line, without the statement."""
    said = str(getattr(error, "orig", None) or error)
    return " ".join(said.split()).rstrip(".") or type(error).__name__


def shown(url: str) -> str:
    """The address without its password."""
    if url.startswith(SQLITE):
        return url.removeprefix(SQLITE)
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return "the address of the jobs"


def _hint(url: str) -> str:
    if url.startswith(SQLITE):
        return "Free some disk space and make the file writable; or move a damaged file away to begin a new one."
    return "Start the database, and check its URL and rights."
