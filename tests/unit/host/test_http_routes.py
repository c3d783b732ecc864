"""Tests for routing requests to HTTP functions: matching, precedence and refusals."""

import pytest

from local.host.http_front import http_routes
from local.host.settings import AppError
from local.host.wire import FunctionDocument


def function(name: str, route: str, *methods: str) -> FunctionDocument:
    trigger = {"type": "httpTrigger", "route": route, "methods": list(methods)}
    return FunctionDocument(name, (trigger,), trigger)


@pytest.mark.parametrize(
    ("route", "path", "is_match"),
    [
        ("api/chat", "api/chat", True),
        ("api/chat", "API/Chat", True),
        ("api/chat", "api/chats", False),
        ("api/chat", "api/chat/1", False),
        ("v1.0/x", "v1x0/x", False),
        ("api/runs/{*rest}", "api/runs", True),
        ("api/runs/{*rest}", "api/RUNS/a%2Fb/events", True),
        ("api/runs/{*rest}", "api/runs/a%0Ab", True),
        ("api/runs/{*rest}", "api/runs2", False),
        ("{*path}", "", True),
        ("{*path}", "a/b", True),
    ],
)
def test_path_is_matched(route: str, path: str, is_match: bool) -> None:
    (compiled,) = http_routes([function("f", route)])
    assert compiled.matches(path) is is_match


def test_the_first_name_in_the_alphabet_is_asked_first() -> None:
    routes = http_routes([function("www", "{*path}"), function("chat", "api/chat/{*rest}")])
    assert [route.function.name for route in routes] == ["chat", "www"]


@pytest.mark.parametrize("route", ["a/{n}", "a/{n?}", "a/{*n}/b", "a/x{n}", "a{*n}", "a/{n:int}"])
def test_another_parameter_than_a_final_catch_all_is_refused(route: str) -> None:
    with pytest.raises(AppError, match="is not supported"):
        http_routes([function("f", route)])


def test_a_route_for_some_methods_is_refused() -> None:
    with pytest.raises(AppError, match="without a list of methods"):
        http_routes([function("f", "a", "GET")])


def test_two_functions_with_one_route_are_refused() -> None:
    with pytest.raises(AppError, match="f and g share"):
        http_routes([function("f", "a/{*x}"), function("g", "A/{*y}")])
