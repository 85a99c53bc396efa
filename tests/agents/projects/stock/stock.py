"""What lies on the shelves."""


class Stock:
    """Counts of things by name."""

    counts = {}

    def add(self, name, number=1):
        self.counts[name] = self.counts.get(name, 0) + number

    def take(self, name, number=1):
        self.counts[name] -= number

    def count(self, name):
        return self.counts.get(name, 0)
