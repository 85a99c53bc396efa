"""Gives Elysia's environment the language model that it loads at import, without the download: a blank one.

Run with the Python of that environment. Elysia uses the model to split texts into sentences and nothing more.
"""

from __future__ import annotations

import sysconfig
from pathlib import Path

import spacy

NAME, VERSION = "en_core_web_sm", "3.8.0"
PACKAGE = f'''"""A blank English model."""

from pathlib import Path

from spacy.util import load_model_from_path

__version__ = "{VERSION}"


def load(**overrides):
    return load_model_from_path(Path(__file__).parent / "{NAME}-{VERSION}", **overrides)
'''
METADATA = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n"


def main() -> None:
    """Write the package into the environment."""
    site = Path(sysconfig.get_path("purelib"))
    (site / NAME).mkdir(exist_ok=True)
    model = spacy.blank("en")
    model.add_pipe("sentencizer")
    model.meta.update(name="core_web_sm", version=VERSION)
    model.to_disk(site / NAME / f"{NAME}-{VERSION}")
    (site / NAME / "__init__.py").write_text(PACKAGE, encoding="utf-8")
    about = site / f"{NAME}-{VERSION}.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(METADATA, encoding="utf-8")
    (about / "RECORD").write_text("", encoding="utf-8")


if __name__ == "__main__":
    main()
