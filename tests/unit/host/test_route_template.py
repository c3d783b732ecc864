"""Route templates: what matches, which route wins, what is refused."""

import pytest

from local.host.http_front import compile_route
from local.host.settings import AppError


@pytest.mark.parametrize(
    ("template", "path", "expected"),
    [
        ("chat", "chat", {}),
        ("chat", "CHAT", {}),
        ("chat", "chats", None),
        ("runs/{run_id}/events", "runs/7/events", {"run_id": "7"}),
        ("runs/{run_id}", "runs/a%2Fb%20c", {"run_id": "a%2Fb c"}),
        ("runs/{run_id}", "runs/%ff%fe", {"run_id": "%ff%fe"}),
        ("runs/{run_id}", "runs/a%0Ab", {"run_id": "a\nb"}),
        ("runs/{run_id}", "runs/7/events", None),
        ("runs/{run_id}", "runs/", None),
        ("files/{*path}", "files/a/b.txt", {"path": "a/b.txt"}),
        ("files/{*path}", "files", {}),
        ("list/{page?}", "list", {}),
        ("list/{page?}", "list/2", {"page": "2"}),
        ("v1.0/x", "v1x0/x", None),
    ],
)
def test_path_is_matched(template: str, path: str, expected: dict[str, str] | None) -> None:
    assert compile_route(template).match(path) == expected


@pytest.mark.parametrize("template", ["a/{n:length(3)}", "a/x{n}", "a/{n:int}"])
def test_unknown_segment_or_constraint_is_refused(template: str) -> None:
    with pytest.raises(AppError, match="this host"):
        compile_route(template)
