from stats import average


def test_the_mean():
    assert average([2, 4, 6]) == 4


def test_of_one():
    assert average([5]) == 5


def test_of_none():
    assert average([]) == 0
