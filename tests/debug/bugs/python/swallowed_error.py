"""An error that was swallowed, and shows up later as something else."""

import json


def load_settings(text):
    try:
        return json.loads(text)
    except ValueError:
        return None  # FAULT


def port_of(text):
    settings = load_settings(text)
    return settings.get("port", 80)


def test_reads_the_port():
    assert port_of('{"port": 8080,}') == 8080
