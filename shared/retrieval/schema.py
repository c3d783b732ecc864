"""The indexes as the search service's REST API takes them (contracts.md, section 1). Pure."""

from shared.platform.search import IndexRow

# Raised when an existing field changes in what only a new index can have, such as its analyzer; new fields
# need nothing. The new index is `<alias>-v<version>` (decision 26).
INDEX_VERSIONS = {"content": 1, "documents": 1, "memory": 1}
VECTOR_PROFILE = "vectors"
SEMANTIC_CONFIGURATION = "default"
_HNSW = "hnsw-cosine"
# Documents come in any language, mixed within one index: a language's analyzer would stem the others wrongly.
# The Unicode rules of standard.lucene split all of them, and vectors find inflected forms.
_ANALYZER = "standard.lucene"


def content_index(name: str, dimensions: int) -> IndexRow:
    """The index of blocks."""
    return {
        "name": name,
        "fields": [
            _key("block_id"),
            _text("doc_id", filterable=True),
            _text("project_id", filterable=True),
            _text("filename", filterable=True, searchable=True),
            _text("document_type", filterable=True, facetable=True),
            _text("department", filterable=True, facetable=True),
            _plain("page_number", "Edm.Int32", filterable=True, sortable=True),
            _plain("start_seconds", "Edm.Double", filterable=True, sortable=True),
            _text("heading_path", searchable=True),
            _text("block_type", filterable=True),
            _text("content", searchable=True),
            _vector("content_vector", dimensions, retrievable=True),
            _text("image_url"),
            _text("image_caption", searchable=True),
            _vector("image_caption_vector", dimensions, retrievable=True),
            _text("content_hash", filterable=True),
            _names("access_control_list"),
            _plain("version", "Edm.Int32", filterable=True),
            _plain("ordinal", "Edm.Int32", sortable=True),
            _text("cues"),
        ],
        "vectorSearch": _vector_search(),
        "semantic": _semantic("filename", ["content", "image_caption"], ["heading_path"]),
    }


def documents_index(name: str) -> IndexRow:
    """The index of documents."""
    return {
        "name": name,
        "fields": [
            _key("doc_id"),
            _text("project_id", filterable=True, facetable=True),
            _text("filename", filterable=True, searchable=True, sortable=True),
            _text("title", searchable=True, sortable=True),
            _text("document_type", filterable=True, searchable=True, sortable=True, facetable=True),
            _plain("upload_date", "Edm.DateTimeOffset", filterable=True, sortable=True),
            _text("author", filterable=True, searchable=True, facetable=True),
            _text("department", filterable=True, searchable=True, facetable=True),
            _text("language", filterable=True, facetable=True),
            _names("tags", searchable=True, facetable=True),
            _plain("page_count", "Edm.Int32", filterable=True, sortable=True),
            _text("summary_brief", searchable=True),
            _text("summary_standard", searchable=True),
            _hidden(_names("names", searchable=True)),
            _hidden(_text("words", searchable=True)),
            _text("source_url"),
            _text("content_hash", filterable=True),
            _plain("version", "Edm.Int32", filterable=True),
            _text("status", filterable=True, facetable=True),
            _text("status_reason"),
            _names("edited_fields"),
            _text("owner_id", filterable=True),
            _names("access_control_list"),
            _plain("document_date", "Edm.DateTimeOffset", filterable=True, sortable=True),
            _text("file_type", filterable=True, facetable=True),
            _text("published_by"),
        ],
        "semantic": _semantic("title", ["summary_standard", "summary_brief"], ["tags", "document_type"]),
    }


def memory_index(name: str, dimensions: int) -> IndexRow:
    """The index of remembered turns. A row's only reader is `user_id`; no access list widens that."""
    return {
        "name": name,
        "fields": [
            _key("memory_id"),
            _text("user_id", filterable=True),
            _text("thread_id", filterable=True),
            _text("question", searchable=True),
            _text("answer_summary", searchable=True),
            _vector("vector", dimensions),
            _plain("created_at", "Edm.DateTimeOffset", filterable=True, sortable=True),
            _plain("doc_ids", "Collection(Edm.String)"),
        ],
        "vectorSearch": _vector_search(),
    }


def _vector_search() -> IndexRow:
    return {
        "algorithms": [{"name": _HNSW, "kind": "hnsw", "hnswParameters": {"metric": "cosine"}}],
        "profiles": [{"name": VECTOR_PROFILE, "algorithm": _HNSW}],
    }


def _key(name: str) -> IndexRow:
    # Filterable and sortable, so that a document's rows can be read page by page in the order of their keys.
    return {**_plain(name, "Edm.String", filterable=True, sortable=True), "key": True}


def _text(
    name: str,
    *,
    filterable: bool = False,
    searchable: bool = False,
    sortable: bool = False,
    facetable: bool = False,
) -> IndexRow:
    field = _plain(name, "Edm.String", filterable=filterable, sortable=sortable, facetable=facetable)
    return {**field, "searchable": True, "analyzer": _ANALYZER} if searchable else field


def _names(name: str, *, searchable: bool = False, facetable: bool = False) -> IndexRow:
    field = _plain(name, "Collection(Edm.String)", filterable=True, facetable=facetable)
    return {**field, "searchable": True, "analyzer": _ANALYZER} if searchable else field


def _hidden(field: IndexRow) -> IndexRow:
    # Searched, never read: thousands of words would come with every document of a list.
    return {**field, "retrievable": False}


def _plain(
    name: str, kind: str, *, filterable: bool = False, sortable: bool = False, facetable: bool = False
) -> IndexRow:
    return {
        "name": name,
        "type": kind,
        "key": False,
        "searchable": False,
        "filterable": filterable,
        "sortable": sortable,
        "facetable": facetable,
        "retrievable": True,
    }


def _vector(name: str, dimensions: int, *, retrievable: bool = False) -> IndexRow:
    return {
        "name": name,
        "type": "Collection(Edm.Single)",
        "searchable": True,
        # Those of blocks are read back for a copy of their document, so that it needs no new ones. Queries of
        # people name their fields: no page of results has vectors. All are stored, or a merge of the access
        # list alone would lose them.
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
