"""Hidden: the places of a user that no command sees, because keys and passwords lie in them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from trysquare.store.location import FOLDER, user_state

_OF_HOME = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".npmrc", ".pypirc",
    ".password-store", ".config/gcloud", ".config/gh", ".config/git/credentials", ".config/trysquare",
    ".local/share/keyrings", ".mozilla", ".config/google-chrome", ".config/chromium", ".bash_history",
    ".zsh_history", ".python_history", ".vault-token", ".cargo/credentials.toml", ".terraform.d",
)  # fmt: skip
_OF_SYSTEM = ("/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/sudoers", "/run/secrets", "/var/run/secrets")


def hidden_places(root: Path, project: Path | None, env: Mapping[str, str] = os.environ) -> list[Path]:
    """Every such place that is there: of the user, of the system, and where Trysquare keeps what people decided."""
    home = Path(env.get("HOME") or Path.home())
    places = [home / name for name in _OF_HOME] + [Path(name) for name in _OF_SYSTEM]
    places += [user_state(env).parent, root / FOLDER]
    if project is not None:
        places.append(project.resolve() / FOLDER)
    return [place for place in dict.fromkeys(places) if place.exists() and not place.is_symlink()]
