"""DocReaderReport: what each part of the documents says, statements with proofs, and what stays open."""

from collections.abc import Sequence

from pydantic import JsonValue

from local.model_server.answers.disagreement import find_disagreement
from local.model_server.answers.markup import statement
from local.model_server.answers.rows import names_of_documents, numbers_of
from local.model_server.prompt_reader import Document
from local.model_server.reports.assignment import Assignment
from local.model_server.reports.gaps import find_gaps
from local.model_server.reports.wording import Wording, wording_for
from local.model_server.text.asked import asked_of
from local.model_server.text.aspects import topic_stems
from local.model_server.text.central import central_indices, is_byline, telling_indices
from local.model_server.text.passages import Passage
from local.model_server.text.ranking import rank_passages
from local.model_server.text.words import content_words, stem

MAX_SECTIONS = 6  # as the prompt allows
SENTENCES_OF_SECTION = 2
MAX_CLAIMS = 8
FIT_FOR_CLAIM = 0.7  # share of the best score; unmeasured
SAME_STATEMENT = 0.7  # share of common words from which two sentences say the same


def write_doc_report(assignment: Assignment) -> dict[str, JsonValue]:
    """{"sections": [{"heading", "summary"}], "claims": [{"text", "proofs"}], "uncertainty": […]}."""
    wording = wording_for(assignment.question)
    claims = _claims(assignment)
    return {
        "sections": _sections(assignment, wording),
        "claims": [claim_of(passage) for passage in claims],
        "uncertainty": list(_uncertainty(assignment, claims, wording)),
    }


def claim_of(passage: Passage, *more: Passage) -> JsonValue:
    """{"text", "proofs"}: what the first passage says, proved by each."""
    return {"text": statement(passage), "proofs": [proof_of(one) for one in (passage, *more)]}


def proof_of(passage: Passage) -> JsonValue:
    return {"doc_id": passage.document.doc_id, "quote": passage.quote}


def says_the_same(one: Passage, other: Passage) -> bool:
    """Whether most words of the shorter one are in the other, and no number tells them apart."""
    if numbers_of(one) != numbers_of(other):
        return False
    first, second = ({stem(word) for word in content_words(passage.reading)} for passage in (one, other))
    return len(first & second) >= SAME_STATEMENT * max(1, min(len(first), len(second)))


def _sections(assignment: Assignment, wording: Wording) -> list[JsonValue]:
    groups: dict[str, list[Passage]] = {}
    for passage in _in_page_order(assignment.passages):
        groups.setdefault(_heading(passage, assignment, wording), []).append(passage)
    sections: list[JsonValue] = []
    for heading in _longest(groups):
        passages = groups[heading]
        chosen = telling_indices([passage.reading for passage in passages], SENTENCES_OF_SECTION)
        summary = " ".join(statement(passages[place]) for place in chosen)
        sections.append({"heading": heading, "summary": summary})
    return sections


def _in_page_order(passages: Sequence[Passage]) -> list[Passage]:
    """Document by document; blocks without a page number stay where they are."""
    places = {passage.document.doc_id: place for place, passage in enumerate(reversed(passages))}

    def place_of(passage: Passage) -> tuple[int, int]:
        page = passage.block.page
        return -places[passage.document.doc_id], int(page) if page.isdecimal() else 0

    return sorted(passages, key=place_of)


def _heading(passage: Passage, assignment: Assignment, wording: Wording) -> str:
    page = wording.page.format(passage.block.page) if passage.block.page else wording.beginning
    heading = passage.block.heading.strip() or page
    return f"{passage.document.title}: {heading}" if len(assignment.read) > 1 else heading


def _longest(groups: dict[str, list[Passage]]) -> list[str]:
    """The headings with most under them, in the order of the document; no more than fit."""
    kept = sorted(groups, key=lambda heading: -sum(len(one.reading) for one in groups[heading]))[
        :MAX_SECTIONS
    ]
    return [heading for heading in groups if heading in set(kept)]


def _claims(assignment: Assignment) -> list[Passage]:
    """The best statements on what is asked; of a document as a whole its central ones."""
    passages = [passage for passage in assignment.passages if not is_byline(passage.reading)]
    if not topic_stems(assignment.question, names_of_documents(assignment.documents)):
        central = central_indices([one.reading for one in passages], MAX_CLAIMS, assignment.embedder)
        return [passages[place] for place in central]
    ranked = rank_passages(asked_of(assignment.question), passages, assignment.embedder)
    chosen: list[Passage] = []
    for item in ranked:
        is_fit = item.score >= FIT_FOR_CLAIM * ranked[0].score
        if (
            is_fit
            and len(chosen) < MAX_CLAIMS
            and not any(says_the_same(item.passage, one) for one in chosen)
        ):
            chosen.append(item.passage)
    return [
        *chosen,
        *_of_others(assignment, ranked_passages=[item.passage for item in ranked], chosen=chosen),
    ]


def _of_others(
    assignment: Assignment, ranked_passages: Sequence[Passage], chosen: Sequence[Passage]
) -> list[Passage]:
    """The best passage of each document that no claim is from: all that were given are reported on."""
    spoken = {passage.document.doc_id for passage in chosen}
    best: dict[str, Passage] = {}
    for passage in ranked_passages:
        best.setdefault(passage.document.doc_id, passage)
    return [best[one.doc_id] for one in assignment.read if one.doc_id in best and one.doc_id not in spoken]


def _uncertainty(assignment: Assignment, claims: Sequence[Passage], wording: Wording) -> list[str]:
    gaps = find_gaps(assignment)
    told = [wording.silent_on.format(aspect) for aspect in gaps.open_aspects]
    told += [wording.not_read.format(document.title) for document in gaps.unread]
    told += [wording.silent_document.format(document.title) for document in gaps.silent]
    told += [text for document in assignment.read if (text := _partly_read(document, wording))]
    if differing := find_disagreement(claims, assignment.passages):
        sides = "; ".join(f"{one.document.title}: {statement(one)}" for one in differing)
        told.append(wording.differ.format(sides))
    return told


def _partly_read(document: Document, wording: Wording) -> str:
    """That only some of its pages were at hand; empty when all were, or when nobody says how many it has."""
    pages = {block.page for block in document.blocks if block.page}
    count = document.attributes.get("page_count", "")
    if not pages or not count.isdecimal() or len(pages) >= int(count):
        return ""
    return wording.partly_read.format(document.title, len(pages), count)
