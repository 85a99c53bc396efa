from amounts import parse_amount
from book import balance


def test_amounts():
    assert parse_amount("12.34") == 1234
    assert parse_amount("7") == 700
    assert parse_amount("0.5") == 50
    assert parse_amount("-1.25") == -125


def test_the_balance():
    assert balance(["coffee 2.50", "", "# a note", "refund -1.00", "big cake 3"]) == 450
