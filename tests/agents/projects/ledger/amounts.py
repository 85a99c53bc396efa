"""Amounts of money as whole cents."""


def parse_amount(text):
    """Cents of a text such as 12.34 or 7."""
    units, cents = text.split(".")
    return int(units) * 100 + int(cents)
