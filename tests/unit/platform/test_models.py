"""Tests for the base model. Validation errors never contain the refused value, which may be private."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from shared.platform.language_models.models import Prompt
from shared.platform.models import Model
from shared.platform.settings import Settings
from shared.tools.base import Parameters


class Numbered(Parameters):
    """Arguments of a hypothetical tool."""

    count: int


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (Prompt, {"name": "answer", "system": "s", "user": ["SECRET TEXT"]}),
        (Numbered, {"count": "SECRET TEXT"}),
        (Settings, {"embedding_dimensions": "SECRET TEXT"}),
        (Settings, {"dev_token_secret": "SECRET TEXT"}),
    ],
)
def test_a_refused_value_is_not_repeated(model: type[BaseModel], values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        model(**values)
    assert "SECRET TEXT" not in str(refused.value)
    assert "SECRET TEXT" not in repr(refused.value)


def test_a_model_is_closed_and_does_not_change() -> None:
    class Pair(Model):
        left: int

    pair = Pair(left=1)
    with pytest.raises(ValidationError, match="frozen"):
        pair.left = 2  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        Pair.model_validate({"left": 1, "right": 2})
