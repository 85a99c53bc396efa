from words import most_used


def test_the_most_used_first():
    assert most_used("b a b c b a", 2) == ["b", "a"]


def test_the_same_count_by_name():
    assert most_used("d c b a", 3) == ["a", "b", "c"]
