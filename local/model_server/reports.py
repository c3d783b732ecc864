"""Handlers for the report schemas of sub-agents: DocReaderReport, ComparatorReport, EvidenceReport and
WebReport.

Each statement is a verbatim passage. Targets without passages are reported as open.
"""

import json
from collections.abc import Callable
from itertools import zip_longest
from urllib.parse import urlsplit

from pydantic import JsonValue

from local.model_server.answers import Material, rank_each
from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import Document
from local.model_server.protocol.requests import ChatRequest
from local.model_server.text.passages import Passage, in_page_order, passages_of
from local.model_server.text.ranking import best_of, is_supported, rank_passages
from local.model_server.tools import Assignment, read_assignment

MAX_SECTIONS = 6  # maximum number of sections per report, as stated in the prompt
SENTENCES_OF_SECTION = 2
MAX_CLAIMS = 8
FIT_FOR_CLAIM = 0.7  # unmeasured; claims must reach this share of the best score
BACKED, UNSUPPORTED = 0.8, 0.1  # unmeasured values of the field `confidence`

Values = dict[str, JsonValue]


def _write_doc_report(assignment: Assignment, embedder: EmbeddingService) -> Values:
    """Return a DocReaderReport: a two-sentence summary per section, and claims from the passages closest to
    the question.
    """
    parts: dict[str, list[Passage]] = {}
    for passage in passages_of([in_page_order(document) for document in assignment.documents]):
        parts.setdefault(passage.block.heading.strip() or passage.document.title, []).append(passage)
    near = rank_each(Material(assignment.question, assignment.documents, embedder))
    return {
        "sections": [
            {
                "heading": heading,
                "summary": " ".join(one.statement for one in sentences[:SENTENCES_OF_SECTION]),
            }
            for heading, sentences in list(parts.items())[:MAX_SECTIONS]
        ],
        "claims": [_claim(passage) for passages in near for passage in passages],
        "uncertainty": [
            f"No passage of {one.title} was at hand." for one in assignment.documents if not one.blocks
        ],
    }


def _write_comparison(assignment: Assignment, embedder: EmbeddingService) -> Values:
    """Return a ComparatorReport. Row 1 compares the best passages of the documents, row 2 the second best,
    and so on.
    """
    similarities: list[JsonValue] = []
    differences: list[JsonValue] = []
    for row in zip_longest(*rank_each(Material(assignment.question, assignment.documents, embedder))):
        passages = [one for one in row if one]
        if len(passages) > 1 and len({one.reading for one in passages}) == 1:
            similarities.append(_claim(*passages))
        else:
            sides: list[JsonValue] = [
                _side(document.doc_id, passage)
                for document, passage in zip(assignment.documents, row, strict=True)
            ]
            differences.append({"dimension": passages[0].block.heading or "statement", "sides": sides})
    return {
        "similarities": similarities,
        "differences": differences,
        "conflicts": [],
        "open_dimensions": [] if differences or similarities else [assignment.question],
    }


def _write_evidence(assignment: Assignment, embedder: EmbeddingService) -> Values:
    backed = _supporting_passages(assignment.question, assignment.documents, embedder)
    claims: list[JsonValue] = [{**_claim(passage), "confidence": BACKED} for passage in backed]
    return {"claims": claims or [{"text": assignment.question, "confidence": UNSUPPORTED, "proofs": []}]}


def _write_web_report(assignment: Assignment, embedder: EmbeddingService) -> Values:
    """Return a WebReport whose claims are the sentences closest to the question, each with its page."""
    backed = _supporting_passages(assignment.question, assignment.pages, embedder)
    claims: list[JsonValue] = [
        {
            "text": one.statement,
            "sources": [{"url": one.document.doc_id, "title": one.document.title, "quote": one.quote}],
        }
        for one in backed
    ]
    sites = ", ".join(sorted({urlsplit(one.document.doc_id).hostname or "" for one in backed}))
    return {
        "claims": claims,
        "trust_notes": [f"Found on: {sites}." if sites else "No page says it."],
    }


def _supporting_passages(
    question: str, documents: list[Document], embedder: EmbeddingService
) -> list[Passage]:
    """Return the passages closest to the question, or an empty list if they don't support an answer."""
    passages = passages_of(documents)
    ranked = rank_passages(question, passages, embedder)
    if not is_supported(question, ranked, passages):
        return []
    return best_of(ranked, FIT_FOR_CLAIM, MAX_CLAIMS)


def _claim(*passages: Passage) -> Values:
    proofs: list[JsonValue] = [{"doc_id": one.document.doc_id, "quote": one.quote} for one in passages]
    return {"text": passages[0].statement, "proofs": proofs}


def _side(doc_id: str, passage: Passage | None) -> JsonValue:
    if passage is None:
        return {"doc_id": doc_id, "statement": "The passages at hand say nothing of it.", "quote": ""}
    return {"doc_id": doc_id, "statement": passage.statement, "quote": passage.quote}


def _handler(
    write: Callable[[Assignment, EmbeddingService], Values],
) -> Callable[[ChatRequest, EmbeddingService], Values]:
    """Return a handler that shortens a report to its token limit. It drops items from the longest list,
    because truncated JSON is invalid.
    """

    def report(request: ChatRequest, embedder: EmbeddingService) -> Values:
        values = write(read_assignment(request.messages), embedder)
        limit = request.output_limit
        while limit and embedder.count_tokens(json.dumps(values)) > limit:
            longest = max(values, key=lambda name: len(json.dumps(values[name])))
            if not (items := values[longest]) or not isinstance(items, list):
                break
            values[longest] = items[:-1]
        return values

    return report


REPORT_HANDLERS = {
    "DocReaderReport": _handler(_write_doc_report),
    "ComparatorReport": _handler(_write_comparison),
    "EvidenceReport": _handler(_write_evidence),
    "WebReport": _handler(_write_web_report),
}
