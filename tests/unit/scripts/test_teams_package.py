"""Tests for the Teams app package beyond the Microsoft schema: ids, hosts, icons and the zip file."""

import io
import zipfile
from typing import Any

import pytest
from PIL import Image

from scripts.teams_package import faults_of, filled_manifest, icons, package_of

VALUES = {
    "BOT_APP_ID": "11111111-2222-4333-8444-555555555555",
    "HOST": "answers.contoso.com",
    "NAME": "Groundwork",
    "DEVELOPER": "Contoso",
    "VERSION": "1.0.0",
    "WEBSITE": "https://answers.contoso.com",
    "PRIVACY": "https://answers.contoso.com/privacy",
    "TERMS": "https://answers.contoso.com/terms",
}
ANYTHING: dict[str, Any] = {}
"""A schema that refuses nothing: what is found is found by our own rules."""


def png(mode: str, size: int, colour: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (size, size), colour).save(buffer, "PNG")
    return buffer.getvalue()


def test_a_filled_manifest_has_no_fault_and_no_place_left() -> None:
    manifest = filled_manifest(VALUES)
    assert "${" not in str(manifest)
    assert faults_of(manifest, icons(), ANYTHING) == []


def test_a_place_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        filled_manifest({name: value for name, value in VALUES.items() if name != "HOST"})


@pytest.mark.parametrize(
    ("name", "value", "place"),
    [
        ("BOT_APP_ID", "groundwork", "id"),
        ("BOT_APP_ID", "00000000-0000-0000-0000-000000000000", "botId"),
        ("HOST", "https://answers.contoso.com", "validDomains"),
        ("HOST", "answers.contoso.com/teams", "validDomains"),
        ("HOST", "*.contoso.com", "validDomains"),
        ("HOST", "localhost", "validDomains"),
        ("HOST", "answers.contoso.com:7071", "validDomains"),
        ("VERSION", "one", "version"),
        ("VERSION", "1.0", "version"),
        ("WEBSITE", "http://answers.contoso.com", "developer.websiteUrl"),
        ("PRIVACY", "", "developer.privacyUrl"),
        ("TERMS", "ftp://answers.contoso.com", "developer.termsOfUseUrl"),
    ],
)
def test_a_wrong_value_is_told_with_its_place(name: str, value: str, place: str) -> None:
    faults = faults_of(filled_manifest({**VALUES, name: value}), icons(), ANYTHING)
    assert [fault for fault in faults if fault.startswith(f"{place}:")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("color.png", png("RGB", 191, (0, 0, 0))),
        ("color.png", png("RGBA", 192, (0, 0, 0, 0))),
        ("outline.png", png("RGBA", 33, (255, 255, 255, 255))),
        ("outline.png", png("RGBA", 32, (255, 255, 255, 255))),
        ("outline.png", png("RGBA", 32, (0, 0, 0, 0))),
        ("outline.png", png("RGB", 32, (255, 255, 255))),
    ],
)
def test_a_wrong_icon_is_told(name: str, content: bytes) -> None:
    faults = faults_of(filled_manifest(VALUES), {**icons(), name: content}, ANYTHING)
    assert [fault.partition(":")[0] for fault in faults] == [f"icons.{name.removesuffix('.png')}"]


def test_a_missing_icon_is_told() -> None:
    faults = faults_of(filled_manifest(VALUES), {"color.png": icons()["color.png"]}, ANYTHING)
    assert faults == ["icons.outline: the file is not in the package"]


def test_the_package_has_its_files_at_the_root_and_is_the_same_each_time() -> None:
    package = package_of(filled_manifest(VALUES), icons())
    assert package == package_of(filled_manifest(VALUES), icons())
    with zipfile.ZipFile(io.BytesIO(package)) as opened:
        assert opened.namelist() == ["manifest.json", "color.png", "outline.png"]
        assert opened.testzip() is None
