"""Tests for upload names: sanitised, readable, and never outside the uploader's folder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.access.models import UserContext
from shared.documents.ids import is_upload, upload_folder
from shared.documents.requests import UploadRequest
from shared.ingestion.uploads import MAX_NAME_BYTES, blob_name_of, clean_filename, clean_folder, uploads_of
from shared.platform.errors import BadDocumentError, CallerError

pytestmark = pytest.mark.attack("path tricks")


def path_of(user_id: str, folder: str, filename: str) -> str:
    request = UploadRequest.model_construct(folder=folder, filename=filename)
    return blob_name_of(request, UserContext(user_id=user_id))


@pytest.mark.parametrize(
    ("given_name", "clean"),
    [
        ("report.pdf", "report.pdf"),
        ("a/b\\c.pdf", "c.pdf"),
        ('it\'s "quoted".pdf', 'it\'s "quoted".pdf'),
        ("say %22hi%22.pdf", 'say "hi".pdf'),
        ("A\u0308rger.pdf", "\u00c4rger.pdf"),
        ("\u202efdp.exe.md", "fdp.exe.md"),
        ("line\nbreak\x00.md", "line break.md"),
        (" .hidden.md. ", ".hidden.md"),
        ("NUL.md", "_NUL.md"),
        ("nullable.md", "nullable.md"),
        (
            "\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645.md",
            "\u0646\u0645\u06cc\u200c\u062f\u0627\u0646\u0645.md",
        ),
        ("half \ud83d.md", "half .md"),
    ],
)
def test_a_name_keeps_what_can_stand_in_one(given_name: str, clean: str) -> None:
    assert clean_filename(given_name) == clean


@pytest.mark.parametrize("name", ["", " ", "..", "/", "a/", "\x00", "a.md.acl.json", "B.PDF.ACL.JSON"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(CallerError):
        clean_filename(name)


def test_a_long_name_keeps_its_suffix() -> None:
    shortened = clean_filename("ü" * 300 + ".pdf")
    assert shortened.endswith("ü.pdf")
    assert len(shortened.encode()) <= MAX_NAME_BYTES


@given(name=st.text(max_size=400), folder=st.text(max_size=60), user_id=st.text(min_size=1, max_size=20))
def test_no_name_leads_out_of_the_uploaders_folder(name: str, folder: str, user_id: str) -> None:
    try:
        path = path_of(user_id, folder, f"{name}.md")
    except (CallerError, BadDocumentError):
        return
    own = uploads_of(user_id)
    assert path.startswith(own)
    assert is_upload(path)
    segments = path.removeprefix(own).split("/")
    assert all(segment == segment.strip() and segment.rstrip(".") for segment in segments)
    assert "\\" not in path
    path.encode("utf-8")


def test_two_users_never_share_a_folder() -> None:
    assert path_of("anna", "", "a.md") != path_of("ben", "", "a.md")
    assert not is_upload("uploads.md")


@pytest.mark.parametrize(
    ("folder", "clean"), [("", ""), ("/a//b/", "a/b"), ("..\\..\\x", "x"), ("./a/../b", "a/b")]
)
def test_a_folder_is_a_plain_path(folder: str, clean: str) -> None:
    assert clean_folder(folder) == clean


def test_a_path_that_the_storage_would_not_take_is_refused() -> None:
    with pytest.raises(CallerError):
        clean_folder("/".join("abcdefghijk"))
    with pytest.raises(CallerError):
        path_of("anna", "/".join(["x" * 150] * 8), "a.md")


@pytest.mark.parametrize("folder", ["", "a", "handbook/deep"])
def test_the_folder_of_an_upload_is_told_from_its_path(folder: str) -> None:
    assert upload_folder(path_of("anna", folder, "b.md")) == folder
    assert upload_folder("dropped/b.md") is None
