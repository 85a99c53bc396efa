"""Tracebacks show the program's frames and none of the debugger's."""

from __future__ import annotations

from trysquare.debug.adapters.python import TracebackCleaner


def test_a_traceback_is_cleaned_however_it_is_chopped() -> None:
    whole = (
        "Traceback (most recent call last):\n"
        '  File "/x/debugpy/_vendored/pydevd/pydevd.py", line 3, in main\n    run()\n    ^^^^^\n'
        '  File "app.py", line 2, in f\n    return {}[1]\nKeyError: 1\n'
    )
    expected = 'Traceback (most recent call last):\n  File "app.py", line 2, in f\n    return {}[1]\nKeyError: 1\n'
    for width in range(1, len(whole) + 1):
        clean = TracebackCleaner()
        pieces = [whole[start : start + width] for start in range(0, len(whole), width)]
        assert "".join(clean(piece) for piece in [*pieces, ""]) == expected


def test_what_a_program_writes_without_a_newline_is_not_held_back() -> None:
    assert TracebackCleaner()("Name? ") == "Name? "
