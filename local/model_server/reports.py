"""DocReaderReport, ComparatorReport, EvidenceReport, WebReport: reports of sub-agents, within their limit.

Each statement is a passage and its own proof. What nothing was read of is said to be open.
"""

import json
from collections.abc import Callable
from urllib.parse import urlsplit

from pydantic import JsonValue

from local.model_server.answers import best_of, rank_each
from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import Block, Document
from local.model_server.protocol.requests import ChatRequest
from local.model_server.sub_agents import Assignment, read_assignment
from local.model_server.text.central import central_indices
from local.model_server.text.passages import Passage, in_page_order, passages_of
from local.model_server.text.ranking import Ranked, rank_passages
from local.model_server.text.support import is_supported, likelihood
from local.model_server.text.words import stems_of, subject_of

MAX_SECTIONS = 6  # as the prompt allows
SENTENCES_OF_SECTION = 2
MAX_CLAIMS = 8
FIT_FOR_CLAIM = 0.7  # share of the best score; unmeasured
UNSUPPORTED = 0.1  # most confidence in a statement without proof

Values = dict[str, JsonValue]


def _write_doc_report(assignment: Assignment, embedder: EmbeddingService) -> Values:
    """Two sentences of each part; claims are the passages nearest to the task, some of each document."""
    parts: dict[tuple[str, str], list[Passage]] = {}
    for passage in passages_of([in_page_order(document) for document in assignment.documents]):
        parts.setdefault((passage.document.title, passage.block.heading.strip()), []).append(passage)
    sections: list[JsonValue] = [
        {
            "heading": heading or title,
            "summary": " ".join(one.statement for one in said[:SENTENCES_OF_SECTION]),
        }
        for (title, heading), said in list(parts.items())[:MAX_SECTIONS]
    ]
    read = [document for document in assignment.documents if document.blocks]
    each = max(1, MAX_CLAIMS // max(len(read), 1))
    claims = [
        claim for document in read for claim in _claims_of(document, assignment.question, each, embedder)
    ]
    unread = [one.title for one in assignment.documents if not one.blocks]
    uncertainty: list[JsonValue] = [f"No passage of {title} was at hand." for title in unread]
    return {"sections": sections, "claims": [_claim(one) for one in claims], "uncertainty": uncertainty}


def _claims_of(document: Document, question: str, most: int, embedder: EmbeddingService) -> list[Passage]:
    """The passages nearest to the question; of a document as a whole its central ones."""
    passages = passages_of([document])
    subject = subject_of(question, stems_of(f"{document.title} {document.filename}"))
    if subject == question:
        return [
            passages[place] for place in central_indices([one.reading for one in passages], most, embedder)
        ]
    return [item.passage for item in best_of(rank_passages(subject, passages, embedder), FIT_FOR_CLAIM, most)]


def _write_comparison(assignment: Assignment, embedder: EmbeddingService) -> Values:
    """A row for the best passage of each document, the second best, the third."""
    similarities: list[JsonValue] = []
    differences: list[JsonValue] = []
    documents = [document for document in assignment.documents if document.blocks]
    ranked = rank_each(assignment.question, documents, embedder)
    for place in range(max(map(len, ranked), default=0)):
        row = {
            items[place].passage.document.doc_id: items[place].passage for items in ranked if items[place:]
        }
        passages = list(row.values())
        if len(passages) > 1 and len({one.reading for one in passages}) == 1:
            similarities.append(_claim(*passages))
        else:
            sides: list[JsonValue] = [_side(one.doc_id, row.get(one.doc_id)) for one in assignment.documents]
            differences.append({"dimension": passages[0].block.heading or "statement", "sides": sides})
    return {
        "similarities": similarities,
        "differences": differences,
        "conflicts": [],
        "open_dimensions": [] if differences or similarities else [assignment.question],
    }


def _write_evidence(assignment: Assignment, embedder: EmbeddingService) -> Values:
    passages = passages_of(assignment.documents)
    ranked = rank_passages(assignment.question, passages, embedder)
    score = likelihood(assignment.question, ranked, passages, embedder)
    if not is_supported(score, embedder):
        confidence = round(min(UNSUPPORTED, score), 2)
        unsupported: JsonValue = {"text": assignment.question, "confidence": confidence, "proofs": []}
        return {"claims": [unsupported]}
    backed = best_of(ranked, FIT_FOR_CLAIM, MAX_CLAIMS)
    return {"claims": [_backed(item, score * item.score / ranked[0].score) for item in backed]}


def _write_web_report(assignment: Assignment, embedder: EmbeddingService) -> Values:
    """The nearest sentences, each with the pages that hold it word by word."""
    pages = [Document(page.url, {"title": page.title}, (Block(page.text),)) for page in assignment.pages]
    passages = passages_of(pages)
    ranked = rank_passages(assignment.question, passages, embedder)
    if not is_supported(likelihood(assignment.question, ranked, passages, embedder), embedder):
        return {"claims": [], "trust_notes": ["No page that was found says anything of it."]}
    claims: list[JsonValue] = []
    for item in best_of(ranked, FIT_FOR_CLAIM, MAX_CLAIMS):
        said = [one for one in passages if one.quote == item.passage.quote]
        claims.append({"text": item.passage.statement, "sources": [_source(one) for one in said]})
    sites = ", ".join(sorted({urlsplit(page.url).hostname or page.url for page in assignment.pages}))
    return {"claims": claims, "trust_notes": [f"Found on: {sites}."]}


def _claim(*passages: Passage) -> JsonValue:
    return {"text": passages[0].statement, "proofs": [_proof(one) for one in passages]}


def _backed(item: Ranked, confidence: float) -> JsonValue:
    bounded = round(min(max(confidence, 0.0), 1.0), 2)
    return {"text": item.passage.statement, "confidence": bounded, "proofs": [_proof(item.passage)]}


def _proof(passage: Passage) -> JsonValue:
    return {"doc_id": passage.document.doc_id, "quote": passage.quote}


def _side(doc_id: str, passage: Passage | None) -> JsonValue:
    if passage is None:
        return {"doc_id": doc_id, "statement": "The passages at hand say nothing of it.", "quote": ""}
    return {"doc_id": doc_id, "statement": passage.statement, "quote": passage.quote}


def _source(passage: Passage) -> JsonValue:
    page = passage.document
    return {"url": page.doc_id, "title": page.attributes.get("title", ""), "quote": passage.quote}


def _handler(
    write: Callable[[Assignment, EmbeddingService], Values],
) -> Callable[[ChatRequest, EmbeddingService], Values]:
    """The report without last items of its longest lists until it keeps to its limit: cut JSON is none."""

    def report(request: ChatRequest, embedder: EmbeddingService) -> Values:
        values = write(read_assignment(request.messages), embedder)
        limit = request.output_limit
        while limit and embedder.count_tokens(_spoken(values)) > limit:
            lists = {name: part for name, part in values.items() if isinstance(part, list) and part}
            if not lists:
                break
            longest = max(lists, key=lambda name: len(_spoken(lists[name])))
            values[longest] = lists[longest][:-1]
        return values

    return report


def _spoken(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


REPORT_HANDLERS = {
    "DocReaderReport": _handler(_write_doc_report),
    "ComparatorReport": _handler(_write_comparison),
    "EvidenceReport": _handler(_write_evidence),
    "WebReport": _handler(_write_web_report),
}
