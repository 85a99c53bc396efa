"""A comparison the wrong way round."""


def largest(values):
    best = values[0]
    for value in values[1:]:
        if value < best:  # FAULT
            best = value
    return best


def test_finds_the_largest():
    assert largest([3, 9, 4]) == 9
