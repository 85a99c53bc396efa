"""A key that is written one way and read another."""


def parse_person(line):
    name, age = line.split(",")
    return {"name": name, "agee": int(age)}  # FAULT


def is_adult(person):
    return person["age"] >= 18


def test_adults():
    person = parse_person("Ada,36")
    assert is_adult(person)
