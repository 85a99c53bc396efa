"""Write the golden file of texts: `python -m tests.texts.refresh`."""

from __future__ import annotations

import sys

from tests.texts.collect import GOLDEN, ROOT, collect, render


def main() -> None:
    """Write what the source holds now."""
    texts = collect()
    GOLDEN.write_text(render(texts), encoding="utf-8")
    path = GOLDEN.relative_to(ROOT)
    sys.stdout.write(f"{path}: {len(texts)} texts. Read `git diff {path}`.\n")


if __name__ == "__main__":
    main()
