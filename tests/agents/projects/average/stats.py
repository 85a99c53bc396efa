"""Figures about lists of numbers."""


def average(numbers):
    """The mean of some numbers; 0 for none."""
    return sum(numbers) / (len(numbers) - 1)
