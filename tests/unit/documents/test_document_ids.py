"""Ids: stable, and told apart by what matters."""

import re

from shared.documents.ids import block_id, document_id, document_of_blob, instance_id, is_sidecar

SAFE_KEY = re.compile(r"[A-Za-z0-9_\-=]{1,100}\Z")


def test_a_path_has_one_id_and_another_path_another() -> None:
    assert document_id("a/ö.pdf") == document_id("a/ö.pdf")
    assert document_id("a/ö.pdf") != document_id("b/ö.pdf")


def test_ids_fit_index_keys_and_instance_ids_whatever_the_path() -> None:
    name = 'folder/it\'s "quoted" #1?.pdf'
    assert SAFE_KEY.match(document_id(name))
    assert SAFE_KEY.match(block_id(document_id(name), "text", "model", 12))
    assert SAFE_KEY.match(instance_id(name, '"0x8DC"'))
    assert SAFE_KEY.match(instance_id(name, "an / odd # etag"))


def test_the_same_event_finds_the_same_instance() -> None:
    assert instance_id("a.pdf", '"0x1"') == instance_id("a.pdf", "0x1")
    assert instance_id("a.pdf", "0x1") != instance_id("a.pdf", "0x2")


def test_a_sidecar_belongs_to_its_document() -> None:
    assert document_of_blob("a/b.pdf.acl.json") == "a/b.pdf"
    assert document_of_blob("a/b.pdf") == "a/b.pdf"
    assert is_sidecar("a/b.pdf.acl.json")
    assert not is_sidecar("acl.json.pdf")
