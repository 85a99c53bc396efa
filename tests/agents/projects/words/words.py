"""How often words are used."""

from counting import counted


def most_used(text, number):
    """The most used words, the most used first; words of the same count by name."""
    counts = counted(text.split())
    return sorted(counts, key=lambda word: counts[word])[:number]
