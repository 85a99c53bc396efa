import pytest
from stock import Stock


def test_add_and_take():
    stock = Stock()
    stock.add("nails", 10)
    stock.take("nails", 4)
    assert stock.count("nails") == 6


def test_two_stocks_know_nothing_of_each_other():
    one, other = Stock(), Stock()
    one.add("screws", 3)
    assert other.count("screws") == 0


def test_more_than_there_is_cannot_be_taken():
    stock = Stock()
    stock.add("hooks", 1)
    with pytest.raises(ValueError):
        stock.take("hooks", 2)
    assert stock.count("hooks") == 1
