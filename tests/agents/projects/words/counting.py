"""Counting things."""


def counted(things):
    """How often each thing is there."""
    counts = {}
    for thing in things:
        counts[thing] = 1
    return counts
