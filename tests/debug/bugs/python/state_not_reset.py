"""State that survives from one use to the next."""


class Counter:
    def __init__(self):
        self.words = {}

    def count(self, text):
        for word in text.split():
            self.words[word] = self.words.get(word, 0) + 1  # FAULT
        return self.words


def test_counts_each_text_by_itself():
    counter = Counter()
    counter.count("a b a")
    assert counter.count("b") == {"b": 1}
