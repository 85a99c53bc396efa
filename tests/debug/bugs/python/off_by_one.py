"""A range that ends one too early."""


def total(prices):
    result = 0
    for index in range(len(prices) - 1):  # FAULT
        result += prices[index]
    return result


def test_total_counts_every_price():
    assert total([5, 7, 11]) == 23
