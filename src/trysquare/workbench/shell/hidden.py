"""Hidden: the places of a user that no command sees, because keys and passwords lie in them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.files.globs import is_under
from trysquare.store.location import FOLDER, user_state
from trysquare.workbench.config import GUARDED

_OF_HOME = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".npmrc", ".pypirc",
    ".password-store", ".config/gcloud", ".config/gh", ".config/git/credentials", ".config/trysquare",
    ".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium", ".bash_history",
    ".zsh_history", ".python_history", ".vault-token", ".cargo/credentials.toml", ".terraform.d",
)  # fmt: skip
_OF_SYSTEM = ("/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/sudoers", "/run/secrets", "/var/run/secrets")


MOST_LOOKED_AT = 200_000


def hidden_places(root: Path, project: Path | None, env: Mapping[str, str] = os.environ) -> list[Path]:
    """Every such place that is there: of the user, of the system, and where Trysquare keeps what people decided."""
    home = Path(env.get("HOME") or Path.home())
    places = [home / name for name in _OF_HOME] + [Path(name) for name in _OF_SYSTEM]
    places += [user_state(env).parent, root / FOLDER]
    if project is not None:
        places.append(project.resolve() / FOLDER)
    return [place for place in dict.fromkeys(places) if place.exists() and not place.is_symlink()]


def matching_places(root: Path, patterns: Sequence[str]) -> list[Path]:
    """Every file and folder that fits one of the patterns, which are relative to the root or plain absolute paths."""
    if not patterns:
        return []
    absolute = [Path(pattern) for pattern in patterns if pattern.startswith("/")]
    found = [path for path in absolute if path.exists() and not path.is_symlink()]
    relative = [pattern for pattern in patterns if not pattern.startswith("/")]
    return [*found, *_walked(root, relative)] if relative else found


def _walked(root: Path, patterns: Sequence[str]) -> Iterator[Path]:
    looked_at = 0
    for folder, folders, files in os.walk(root):
        inside = Path(folder).relative_to(root)
        hidden = [name for name in (*folders, *files) if is_under((inside / name).as_posix(), patterns)]
        yield from (Path(folder, name) for name in hidden if not Path(folder, name).is_symlink())
        gone = {*hidden, *(GUARDED if folder == str(root) else ())}
        folders[:] = [name for name in folders if name not in gone]
        looked_at += len(folders) + len(files)
        if looked_at > MOST_LOOKED_AT:
            raise ToolError(
                f"The workspace has more than {MOST_LOOKED_AT:,} files, too many to find those that are hidden.",
                code=ErrorCode.COMMAND_NOT_ALLOWED,
                instruction="Do without commands here: what is hidden could not be kept from them.",
            )
