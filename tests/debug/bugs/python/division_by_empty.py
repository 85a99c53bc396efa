"""An average over nothing."""


def only_valid(readings):
    return [reading for reading in readings if reading < 0]  # FAULT


def average(readings):
    valid = only_valid(readings)
    count = len(valid)
    return sum(valid) / count


def test_average():
    assert average([2, 4, 6]) == 4
