"""Settings from the environment: which variable gives which field, and what is made of its text."""

from typing import Literal

import pytest
from pydantic import Field, ValidationError
from pydantic_settings import SettingsConfigDict

from shared.platform.settings import EnvironmentModel


class Things(EnvironmentModel):
    """A field of each kind that there is."""

    model_config = SettingsConfigDict(frozen=True, extra="ignore", populate_by_name=True, defer_build=False)

    thing_count: int = Field(default=1, ge=0)
    thing_is_on: bool = False
    thing_kind: Literal["a", "b"] = "a"
    thing_share: float = 0.5
    thing_key: str | None = Field(default=None, alias="ThingStorage__key")


def things(environment: pytest.MonkeyPatch, **variables: str) -> Things:
    for name, text in variables.items():
        environment.setenv(name, text)
    return Things()


def test_text_becomes_what_the_field_is(monkeypatch: pytest.MonkeyPatch) -> None:
    found = things(
        monkeypatch, THING_COUNT="7", THING_IS_ON="true", THING_KIND="b", THING_SHARE="1", OTHER="unknown"
    )
    assert found == Things(thing_count=7, thing_is_on=True, thing_kind="b", thing_share=1.0)


@pytest.mark.parametrize("name", ["THING_COUNT", "thing_count", "Thing_Count"])
def test_a_name_counts_in_any_case(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert things(monkeypatch, **{name: "3"}).thing_count == 3


@pytest.mark.parametrize("name", ["ThingStorage__key", "THINGSTORAGE__KEY", "THING_KEY"])
def test_a_field_with_an_alias_is_found_by_either_name(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    assert things(monkeypatch, **{name: "k"}).thing_key == "k"


def test_the_alias_goes_before_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert things(monkeypatch, ThingStorage__key="alias", THING_KEY="name").thing_key == "alias"


def test_what_is_empty_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert things(monkeypatch, THING_COUNT="", ThingStorage__key="", THING_KEY="k") == Things(thing_key="k")


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("THING_COUNT", "-1", "thing_count"),
        ("THING_COUNT", "many", "thing_count"),
        ("THING_KIND", "c", "thing_kind"),
        ("THING_IS_ON", "perhaps", "thing_is_on"),
    ],
)
def test_what_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch, name: str, text: str, place: str) -> None:
    with pytest.raises(ValidationError) as refused:
        things(monkeypatch, **{name: text})
    assert [error["loc"] for error in refused.value.errors()] == [(place,)]
