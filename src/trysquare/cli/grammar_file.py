"""`trysquare grammar --check`: a GBNF file, whoever wrote it, held against what llama.cpp needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trysquare.cli.output import count, styled
from trysquare.core.errors import ConfigurationError
from trysquare.grammar.gbnf_checking import check_grammar
from trysquare.grammar.gbnf_reading import read_gbnf
from trysquare.grammar.text_matching import TextMatcher


def check_file(file: Path, texts: Sequence[str]) -> int:
    """Say what is wrong with a file, or else which texts fit it; 1 if something is wrong or does not fit."""
    try:
        written = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot be read: {error}", where=str(file)) from error
    grammar = read_gbnf(written, source=str(file))
    findings = check_grammar(grammar)
    for finding in findings:
        print(f"{styled('error', 'red') if finding.fatal else styled('warning', 'yellow')}: {finding.text}")
    if any(finding.fatal for finding in findings):
        return 1
    print(f"{file}: {count(len(grammar.rules), 'rule')}, {'usable' if findings else 'nothing wrong'}")
    matcher = TextMatcher(grammar)
    return max([_tell(matcher, text) for text in texts], default=0)


def _tell(matcher: TextMatcher, text: str) -> int:
    if matcher.accepts(text):
        print(f"fits: {text}")
        return 0
    stop = matcher.stops_at(text)
    print(f"does not fit: {text}")
    print("  it is not complete" if stop is None else f"{'':>{stop + 14}}^")
    return 1
