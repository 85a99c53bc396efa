"""A branch without a return."""


def find_user(users, name):
    for user in users:  # FAULT
        if user["name"] == name:
            return user


def greeting(users, name):
    user = find_user(users, name)
    return "Hello " + user["name"]


def test_greets_everybody():
    users = [{"name": "Ada"}, {"name": "Grace"}]
    assert greeting(users, "Linus") == "Hello Linus"
