"""The definitions name every field that rows carry, and the contract's attributes."""

from shared.documents.models import Block
from shared.retrieval.models import DocumentRecord
from shared.retrieval.schema import content_index, documents_index

CONTENT = {field["name"]: field for field in content_index("blocks", 384)["fields"]}
DOCUMENTS = {field["name"]: field for field in documents_index("documents")["fields"]}


def test_every_field_of_a_block_and_of_a_document_has_its_column() -> None:
    assert set(Block.model_fields) <= set(CONTENT)
    assert set(DocumentRecord.model_fields) | {"names", "words"} == set(DOCUMENTS)


def test_what_a_document_is_recognised_by_is_searched_and_never_read() -> None:
    assert all(
        DOCUMENTS[name]["searchable"] and not DOCUMENTS[name]["retrievable"] for name in ("names", "words")
    )


def test_vectors_have_the_length_of_the_settings_and_can_be_read_for_a_copy() -> None:
    vectors = [field for field in CONTENT.values() if field["type"] == "Collection(Edm.Single)"]
    assert [field["name"] for field in vectors] == ["content_vector", "image_caption_vector"]
    assert all(field["dimensions"] == 384 and field["retrievable"] for field in vectors)


def test_both_indexes_can_be_trimmed_by_rights() -> None:
    for fields in (CONTENT, DOCUMENTS):
        assert fields["access_control_list"]["filterable"]
        assert fields["access_control_list"]["type"] == "Collection(Edm.String)"
        assert [name for name, field in fields.items() if field.get("key")] == [next(iter(fields))]
