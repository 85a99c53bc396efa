"""SQLAlchemy engine of the jobs database: a SQLite file, or PostgreSQL by its URL."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.files.edit import exclusive_lock

SQLITE = "sqlite:///"
_CONNECT_SECONDS = 10
_CHECKED_BYTES = 16 * 1024 * 1024
"""Files up to this size are checked when they are opened, which takes some milliseconds."""
_OPENING = 7_305_481_126
"""Number of the PostgreSQL advisory lock for creating tables."""


def connect(url: str) -> sa.Engine:
    """An engine for the URL, without tables; raises on a file that is damaged or not a database."""
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            is_file = url.startswith(SQLITE)
            if is_file and Path(url.removeprefix(SQLITE)).stat().st_size <= _CHECKED_BYTES:
                found = connection.execute(sa.text("PRAGMA quick_check(1)")).scalar()
                if found != "ok":
                    raise _cannot_open(url, f"it is damaged: {found}")
            else:
                connection.execute(sa.text("PRAGMA schema_version" if is_file else "SELECT 1"))
    except SQLAlchemyError as error:
        engine.dispose()
        raise _cannot_open(url, error_text(error)) from error
    return engine


def _cannot_open(url: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"Cannot open the jobs database: {why}.", where=masked_url(url), hint=_hint(url))


def _engine(url: str) -> sa.Engine:
    if url.startswith(SQLITE):
        return _sqlite_engine(url)
    kind, separator, rest = url.partition("://")
    if kind not in ("postgres", "postgresql") or not separator:
        raise ConfigurationError(
            "Unsupported URL of the jobs database.",
            where=masked_url(url),
            hint="Use postgresql://user@host/database, or omit it for a file in the project.",
        )
    try:
        return sa.create_engine(
            f"postgresql+psycopg://{rest}",
            pool_size=20,
            pool_pre_ping=True,
            connect_args={"connect_timeout": _CONNECT_SECONDS},
        )
    except (ArgumentError, ValueError, ImportError) as error:
        raise ConfigurationError(
            f"Invalid URL of the jobs database: {error}.",
            where=masked_url(url),
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
    # Writers wait from their first statement on, instead of failing when a read transaction starts to write.
    connection.isolation_level = "IMMEDIATE"
    for setting in ("busy_timeout = 30000", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")


@contextmanager
def exclusive_setup(engine: sa.Engine, url: str) -> Generator[None]:
    """Lock the creation of tables: other processes wait and then find them."""
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            connection.execute(sa.text(f"SELECT pg_advisory_lock({_OPENING})"))
            try:
                yield
            finally:
                connection.execute(sa.text(f"SELECT pg_advisory_unlock({_OPENING})"))
        return
    with exclusive_lock(Path(url.removeprefix(SQLITE) + ".lock")):
        yield


@contextmanager
def tool_errors(url: str) -> Generator[None]:
    """Convert database errors to tool errors."""
    try:
        yield
    except SQLAlchemyError as error:
        raise ToolError(
            f"Cannot access the jobs in {masked_url(url)}: {error_text(error)}.",
            code=ErrorCode.STATE_UNAVAILABLE,
            instruction=_hint(url),
        ) from error


def error_text(error: Exception) -> str:
    """The message of a database error in one line, without the statement."""
    message = str(getattr(error, "orig", None) or error)
    return " ".join(message.split()).rstrip(".") or type(error).__name__


def masked_url(url: str) -> str:
    """The URL without its password, or the path of the file."""
    if url.startswith(SQLITE):
        return url.removeprefix(SQLITE)
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except (ArgumentError, ValueError):
        return "the jobs database"


def _hint(url: str) -> str:
    if url.startswith(SQLITE):
        return "Free disk space and make the file writable; or move a damaged file away to start a new one."
    return "Start the database, and check its URL and permissions."
