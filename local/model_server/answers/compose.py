"""Chooses how to answer a prompt that holds documents. One entry per query type."""

from collections.abc import Callable

from local.model_server.answers.comparison import answer_comparison
from local.model_server.answers.content import answer_content
from local.model_server.answers.figures import with_figures
from local.model_server.answers.listing import answer_listing, answer_metadata
from local.model_server.answers.material import Material
from local.model_server.answers.summary import answer_summary

_ANSWERS: dict[str, Callable[[Material], str]] = {
    "CONTENT_SEARCH": answer_content,
    "DOCUMENT_SUMMARY": answer_summary,
    "COMPARISON": answer_comparison,
    "LISTING": answer_listing,
    "METADATA_SEARCH": answer_metadata,
}


def answer_from_documents(material: Material) -> str:
    """Markdown with cite and figure tags, or the abstain tag alone.

    An unknown query type counts as CONTENT_SEARCH.
    """
    wants_blocks = material.query_type not in {"LISTING", "METADATA_SEARCH"}
    if wants_blocks and not material.has_blocks and material.documents:
        return answer_metadata(material)
    return with_figures(_ANSWERS.get(material.query_type, answer_content)(material), material)
