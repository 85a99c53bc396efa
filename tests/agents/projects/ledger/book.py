"""A book of amounts."""

from amounts import parse_amount


def balance(lines):
    """The sum of lines such as `coffee 2.50`; lines that are empty or begin with # do not count."""
    return sum(parse_amount(line.split(" ")[1]) for line in lines)
