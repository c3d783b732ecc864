"""Definitions of the search indexes as REST API bodies. Pure."""

from shared.platform.search import IndexRow

# Increase a version when an existing field changes in a way that needs a new index, such as another analyzer.
# New fields need no new version. The new index is `<alias>-v<version>` (decision 26).
INDEX_VERSIONS = {"content": 1, "documents": 1, "memory": 1}
VECTOR_PROFILE = "vectors"
SEMANTIC_CONFIGURATION = "default"
_HNSW = "hnsw-cosine"
# An index mixes languages, and the analyzer of one language would stem the others wrongly. The Unicode rules
# of standard.lucene suit all languages, and vector search finds inflected forms.
_ANALYZER = "standard.lucene"


def content_index(name: str, dimensions: int) -> IndexRow:
    """Return the definition of the content index, which holds blocks and their vectors."""
    return {
        "name": name,
        "fields": [
            _key("block_id"),
            _field("doc_id", filterable=True),
            _field("project_id", filterable=True),
            _field("filename", filterable=True, searchable=True),
            _field("document_type", filterable=True, facetable=True),
            _field("department", filterable=True, facetable=True),
            _field("page_number", "Edm.Int32", filterable=True, sortable=True),
            _field("start_seconds", "Edm.Double", filterable=True, sortable=True),
            _field("heading_path", searchable=True),
            _field("block_type", filterable=True),
            _field("content", searchable=True),
            _vector("content_vector", dimensions, retrievable=True),
            _field("image_url"),
            _field("image_caption", searchable=True),
            _vector("image_caption_vector", dimensions, retrievable=True),
            _field("content_hash", filterable=True),
            _names("access_control_list"),
            _field("thread_id", filterable=True),
            _field("version", "Edm.Int32", filterable=True),
            _field("ordinal", "Edm.Int32", sortable=True),
            _field("cues"),
        ],
        "vectorSearch": _vector_search(),
        "semantic": _semantic("filename", ["content", "image_caption"], ["heading_path"]),
    }


def documents_index(name: str) -> IndexRow:
    """Return the definition of the documents index, with one row per document."""
    return {
        "name": name,
        "fields": [
            _key("doc_id"),
            _field("project_id", filterable=True, facetable=True),
            _field("filename", filterable=True, searchable=True, sortable=True),
            _field("title", searchable=True, sortable=True),
            _field("document_type", filterable=True, searchable=True, sortable=True, facetable=True),
            _field("upload_date", "Edm.DateTimeOffset", filterable=True, sortable=True),
            _field("author", filterable=True, searchable=True, facetable=True),
            _field("department", filterable=True, searchable=True, facetable=True),
            _field("language", filterable=True, facetable=True),
            _names("tags", searchable=True, facetable=True),
            _field("page_count", "Edm.Int32", filterable=True, sortable=True),
            _field("summary_brief", searchable=True),
            _field("summary_standard", searchable=True),
            _hidden(_names("names", searchable=True)),
            _hidden(_field("words", searchable=True)),
            _field("source_url"),
            _field("content_hash", filterable=True),
            _field("version", "Edm.Int32", filterable=True),
            _field("status", filterable=True, facetable=True),
            _field("status_reason"),
            _names("edited_fields"),
            _field("owner_id", filterable=True),
            _names("access_control_list"),
            _field("thread_id", filterable=True),
            _field("document_date", "Edm.DateTimeOffset", filterable=True, sortable=True),
            _field("file_type", filterable=True, facetable=True),
            _field("published_by"),
        ],
        "semantic": _semantic("title", ["summary_standard", "summary_brief"], ["tags", "document_type"]),
    }


def memory_index(name: str, dimensions: int) -> IndexRow:
    """Return the definition of the memory index, which holds earlier questions and answers. Rows have no
    access list: only the user in `user_id` may read them.
    """
    return {
        "name": name,
        "fields": [
            _key("memory_id"),
            _field("user_id", filterable=True),
            _field("thread_id", filterable=True),
            _field("question", searchable=True),
            _field("answer_summary", searchable=True),
            _vector("vector", dimensions),
            _field("created_at", "Edm.DateTimeOffset", filterable=True, sortable=True),
            _field("doc_ids", "Collection(Edm.String)"),
        ],
        "vectorSearch": _vector_search(),
    }


def _vector_search() -> IndexRow:
    return {
        "algorithms": [{"name": _HNSW, "kind": "hnsw", "hnswParameters": {"metric": "cosine"}}],
        "profiles": [{"name": VECTOR_PROFILE, "algorithm": _HNSW}],
    }


def _key(name: str) -> IndexRow:
    # Keys are filterable and sortable, so that rows can be paged in key order.
    return {**_field(name, filterable=True, sortable=True), "key": True}


def _field(
    name: str,
    kind: str = "Edm.String",
    *,
    searchable: bool = False,
    filterable: bool = False,
    sortable: bool = False,
    facetable: bool = False,
) -> IndexRow:
    field: IndexRow = {
        "name": name,
        "type": kind,
        "key": False,
        "searchable": searchable,
        "filterable": filterable,
        "sortable": sortable,
        "facetable": facetable,
        "retrievable": True,
    }
    return {**field, "analyzer": _ANALYZER} if searchable else field


def _names(name: str, *, searchable: bool = False, facetable: bool = False) -> IndexRow:
    kind = "Collection(Edm.String)"
    return _field(name, kind, searchable=searchable, filterable=True, facetable=facetable)


def _hidden(field: IndexRow) -> IndexRow:
    # The words are searchable but not retrievable, because otherwise each document would be returned with
    # thousands of words.
    return {**field, "retrievable": False}


def _vector(name: str, dimensions: int, *, retrievable: bool = False) -> IndexRow:
    return {
        "name": name,
        "type": "Collection(Edm.Single)",
        "searchable": True,
        # Block vectors are read when a document is copied. User queries select fields by name, so their
        # results have no vectors. All vectors are stored, because a merge of only the access list would
        # otherwise lose them.
        "retrievable": retrievable,
        "stored": True,
        "dimensions": dimensions,
        "vectorSearchProfile": VECTOR_PROFILE,
    }


def _semantic(title: str, content: list[str], keywords: list[str]) -> IndexRow:
    return {
        "configurations": [
            {
                "name": SEMANTIC_CONFIGURATION,
                "prioritizedFields": {
                    "titleField": {"fieldName": title},
                    "prioritizedContentFields": [{"fieldName": field} for field in content],
                    "prioritizedKeywordsFields": [{"fieldName": field} for field in keywords],
                },
            }
        ]
    }
