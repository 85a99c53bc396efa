from slugs import slug


def test_words():
    assert slug("Hello World") == "hello-world"


def test_marks_between_words_become_one_dash():
    assert slug("Hello,   World!") == "hello-world"
