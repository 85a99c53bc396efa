"""A number that was read as text and never converted."""


def read_quantities(lines):
    quantities = []
    for line in lines:
        _, _, amount = line.partition(":")
        quantities.append(amount)  # FAULT
    return quantities


def sum_up(lines):
    total = 0
    for amount in read_quantities(lines):
        total = total + amount
    return total


def test_sums_quantities():
    assert sum_up(["apples:3", "pears:4"]) == 7
