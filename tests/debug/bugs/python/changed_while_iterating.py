"""A list that is shortened while it is walked through."""


def remove_blank(lines):
    for line in lines:
        if not line.strip():
            lines.remove(line)  # FAULT
    return lines


def test_removes_all_blank_lines():
    assert remove_blank(["a", "", " ", "b"]) == ["a", "b"]
