"""Functions that all see the last value of a loop's variable."""


def make_multipliers():
    found = []
    for factor in (1, 2, 3):
        found.append(lambda value: value * factor)  # noqa: B023  # FAULT
    return found


def test_each_multiplies_by_its_own():
    first, second, third = make_multipliers()
    assert first(10) == 10
