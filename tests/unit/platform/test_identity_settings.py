"""Settings of who is let in: what is wrong is named before anybody is let in by mistake."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.fakes.services import fake_settings


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"graph_endpoint": "http://graph.microsoft.com"}, "GRAPH_ENDPOINT"),
        ({"graph_endpoint": "https://graph.microsoft.com/v1.0"}, "GRAPH_ENDPOINT"),
        ({"graph_endpoint": "https://graph.microsoft.com?x=1"}, "GRAPH_ENDPOINT"),
        ({"graph_endpoint": "https://me@graph.microsoft.com"}, "GRAPH_ENDPOINT"),
        ({"graph_endpoint": "graph.microsoft.com"}, "GRAPH_ENDPOINT"),
        ({"allowed_tenants": "contoso.com"}, "ALLOWED_TENANTS"),
        ({"allowed_tenants": "72f988bf-86f1-41af-91ab-2d7cd011db47;x"}, "ALLOWED_TENANTS"),
        ({"group_overage": "none"}, "GROUP_OVERAGE"),
        ({"guests": "everybody"}, "GUESTS"),
        ({"group_cache_s": 86_400}, "GROUP_CACHE_S"),
        ({"graph_timeout_s": 0}, "GRAPH_TIMEOUT_S"),
    ],
)
def test_what_is_wrong_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        fake_settings(**wrong)


@pytest.mark.parametrize(
    "endpoint", ["https://graph.microsoft.us", "https://graph.microsoft.com/", "http://127.0.0.1:8000"]
)
def test_national_clouds_and_this_machine_will_do(endpoint: str) -> None:
    assert fake_settings(graph_endpoint=endpoint).identity.graph_endpoint == endpoint


def test_tenants_are_compared_in_small_letters() -> None:
    listed = " 72F988BF-86F1-41AF-91AB-2D7CD011DB47 ,,0d4c3b2a-1f0e-4d5c-8b7a-665544332211"
    assert fake_settings(allowed_tenants=listed).identity.tenants == (
        "72f988bf-86f1-41af-91ab-2d7cd011db47",
        "0d4c3b2a-1f0e-4d5c-8b7a-665544332211",
    )
    assert fake_settings().identity.tenants == ()
