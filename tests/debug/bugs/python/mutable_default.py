"""A default value that all calls share."""


def add_tag(tag, tags=[]):  # noqa: B006  # FAULT
    tags.append(tag)
    return tags


def test_tags_start_empty():
    add_tag("first")
    assert add_tag("second") == ["second"]
