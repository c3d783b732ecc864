"""Tests for document ids: they are stable and distinct, and windows of ids cover all documents in turn."""

import random
import re

import pytest

from shared.documents.ids import (
    EVERYTHING,
    IdWindow,
    block_id,
    document_id,
    document_of_blob,
    has_own_sidecar,
    ingestion_id,
    is_conversation_id,
    is_sidecar,
    thread_of,
)

SAFE_KEY = re.compile(r"[A-Za-z0-9_\-=]{1,100}\Z")


def test_a_path_has_one_id_and_another_path_another() -> None:
    assert document_id("a/ö.pdf") == document_id("a/ö.pdf")
    assert document_id("a/ö.pdf") != document_id("b/ö.pdf")


def test_ids_fit_index_keys_and_instance_ids_whatever_the_path() -> None:
    name = 'folder/it\'s "quoted" #1?.pdf'
    assert SAFE_KEY.match(document_id(name))
    assert SAFE_KEY.match(block_id(document_id(name), ("text",), "model", 12))
    assert SAFE_KEY.match(ingestion_id(name))


def test_a_sidecar_belongs_to_its_document() -> None:
    assert document_of_blob("a/b.pdf.acl.json") == "a/b.pdf"
    assert document_of_blob("a/b.pdf") == "a/b.pdf"
    assert is_sidecar("a/b.pdf.acl.json")
    assert not is_sidecar("acl.json.pdf")


@pytest.mark.parametrize(
    ("blob_name", "thread_id"),
    [
        ("conversation-files/t1/a.pdf", "t1"),
        ("conversation-files/t1/b/a.pdf", "t1"),
        ("conversation-files//a.pdf", "?"),
        ("conversation-files/", "?"),
        ("uploads/conversation-files/t1/a.pdf", ""),
        ("conversation-filesX/t1/a.pdf", ""),
    ],
)
def test_the_thread_of_a_file_follows_from_its_path(blob_name: str, thread_id: str) -> None:
    assert thread_of(blob_name) == thread_id
    assert is_conversation_id(document_id(blob_name)) == (thread_id != "")
    assert has_own_sidecar(blob_name) == (thread_id != "" or blob_name.startswith("uploads/"))


IDS = [document_id(f"folder/file {number}.pdf") for number in range(4096)]


@pytest.mark.parametrize("bits", [0, 1, 3, 8])
def test_each_document_lies_in_one_window_of_a_width(bits: int) -> None:
    windows = [IdWindow(bits, value) for value in range(1 << bits)]
    assert all(sum(window.holds(doc_id) for window in windows) == 1 for doc_id in IDS[:256])


def test_each_window_comes_once_in_as_many_counts_as_there_are() -> None:
    start = random.Random(1).randrange(10**9)
    windows = {EVERYTHING.narrow(start + number, 6) for number in range(64)}
    assert windows == {IdWindow(6, value) for value in range(64)}


def test_a_narrower_window_lies_within_the_wider_one_of_its_count() -> None:
    for count in range(100, 130):
        wider = EVERYTHING.narrow(count, 3)
        narrower = wider.narrow(count, 8)
        assert narrower == EVERYTHING.narrow(count, 8)
        assert {doc_id for doc_id in IDS if narrower.holds(doc_id)} < {
            doc_id for doc_id in IDS if wider.holds(doc_id)
        }


def test_a_window_is_never_made_wider() -> None:
    assert IdWindow(5, 9).narrow(7, 2) == IdWindow(5, 9)


def test_halves_have_about_half_of_the_documents() -> None:
    count = sum(EVERYTHING.narrow(0).holds(doc_id) for doc_id in IDS)
    assert 0.45 < count / len(IDS) < 0.55


def test_a_condition_says_what_the_window_holds() -> None:
    assert EVERYTHING.condition("doc_id") is None
    assert IdWindow(8, 0).condition("doc_id") == "doc_id lt '010000'"
    assert IdWindow(8, 255).condition("doc_id") == "doc_id ge 'ff0000'"
    assert IdWindow(8, 16).condition("doc_id") == "(doc_id ge '100000') and (doc_id lt '110000')"


@pytest.mark.parametrize(
    ("window", "prefix", "share"),
    [
        (EVERYTHING, "", 1.0),
        (IdWindow(3, 5), "", 1 / 8),
        (IdWindow(4, 5), "5", 1 / 16),
        (IdWindow(10, 3), "00", 1 / 1024),
    ],
)
def test_what_all_of_its_ids_begin_with_and_how_large_it_is(
    window: IdWindow, prefix: str, share: float
) -> None:
    assert (window.prefix, window.share) == (prefix, share)
    assert all(doc_id.startswith(prefix) for doc_id in IDS if window.holds(doc_id))
