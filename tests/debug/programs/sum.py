import sys


def add(a, b):
    c = a + b
    return c


point = {"x": 1, "y": [2, 3]}
total = add(point["x"], point["y"][0])
print("sum", total)
sys.exit(3)
