"""MODEL_FEATURES is `auto`, or names parts of the protocol; anything else stops the start."""

import pytest
from pydantic import ValidationError

from tests.fakes.services import fake_settings


@pytest.mark.parametrize("value", ["auto", " AUTO "])
def test_nothing_is_known_beforehand_by_default(value: str) -> None:
    assert fake_settings().known_model_features is None
    assert fake_settings(model_features=value).known_model_features is None


def test_parts_are_listed_by_name() -> None:
    told = fake_settings(model_features="Tools, max_tokens,,system_role")
    assert told.known_model_features == frozenset(("tools", "max_tokens", "system_role"))


@pytest.mark.parametrize("value", ["tool", "auto,tools", "json"])
def test_what_is_no_part_stops_the_start_with_those_that_are(value: str) -> None:
    with pytest.raises(ValidationError, match=r"MODEL_FEATURES.*max_tokens"):
        fake_settings(model_features=value)
