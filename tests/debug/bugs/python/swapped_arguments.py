"""Two arguments in the wrong order."""


def discount(price, percent):
    return price - price * percent / 100


def checkout(prices, percent):
    total = 0
    for price in prices:
        total += discount(percent, price)  # FAULT
    return total


def test_checkout_applies_the_discount():
    assert checkout([200, 100], 10) == 270
