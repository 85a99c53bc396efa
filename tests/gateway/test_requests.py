"""The measured set of requests: large enough, about tools that exist, and cut in two by a fixed rule."""

from __future__ import annotations

from collections import Counter

from tests.gateway.requests.reading import KINDS, read_other_requests, read_practice, read_requests, read_servers


def test_there_are_ten_servers_with_about_a_hundred_tools() -> None:
    servers = read_servers()
    assert len(servers) == 10
    assert 100 <= sum(map(len, servers.values())) <= 130
    assert all(len({one.name for one in tools}) == len(tools) for tools in servers.values())


def test_there_are_over_a_hundred_and_fifty_requests_about_a_third_of_each_kind() -> None:
    requests = read_requests()
    assert len(requests) >= 150
    assert len({request.text for request in requests}) == len(requests)
    counts = Counter(request.kind for request in requests)
    assert all(counts[kind] >= 0.3 * len(requests) for kind in KINDS)


def test_every_request_wants_tools_that_exist_and_impossible_ones_want_none() -> None:
    known = {f"{server}.{one.name}" for server, tools in read_servers().items() for one in tools}
    for request in [*read_requests(), *read_practice(), *read_other_requests()]:
        assert request.wanted <= known
        assert bool(request.wanted) == (request.kind != "impossible")


def test_no_measured_request_is_among_those_that_search_is_tuned_on() -> None:
    held_out = {request.text for request in read_requests() if request.is_held_out}
    measured = held_out | {request.text for request in read_other_requests()}
    assert not measured & {request.text for request in read_practice()}


def test_about_half_of_every_kind_is_held_out() -> None:
    for kind in KINDS:
        held_out = [request.is_held_out for request in read_requests() if request.kind == kind]
        assert 0.35 <= sum(held_out) / len(held_out) <= 0.65
