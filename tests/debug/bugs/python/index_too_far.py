"""A range that ends one too late."""


def running_differences(values):
    found = []
    for index in range(len(values)):  # FAULT
        found.append(values[index + 1] - values[index])
    return found


def test_differences():
    assert running_differences([1, 4, 9]) == [3, 5]
