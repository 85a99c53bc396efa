"""An attribute that only one path sets."""


class Connection:
    def __init__(self, address):
        self.address = address
        self.socket = None  # FAULT

    def open(self):
        self.socket = ["open", self.address]

    def send(self, text):
        self.socket.append(text)
        return len(self.socket)


def test_sends():
    connection = Connection("here")
    assert connection.send("hello") == 3
