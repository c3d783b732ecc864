"""Renders the task, passages and tool results for a sub-agent's prompt, within a token limit.

All retrieved text is data, so it is escaped and can neither close nor open an element.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import Literal

from shared.answering.budget import LEAST_CHARS_PER_TOKEN
from shared.evidence.document_prompt import documents_with_blocks, documents_with_summaries
from shared.platform.prompts import element
from shared.retrieval.models import DocumentRecord, Hit
from shared.tools.models import WebHit

# Length of the XML element around a block, including a share of the element around its document.
_FRAME_CHARS = 120
# Minimum length to which a text is truncated.
_LEAST_CHARS = 400
# Maximum length of the text of a web page. Not measured.
_PAGE_CHARS = 6_000


def in_turns(hit_lists: Iterable[Sequence[Hit]]) -> list[Hit]:
    """Interleave hit lists by rank and drop duplicates. The best hits of all lists come first, then the
    second best, and so on.
    """
    first: dict[str, Hit] = {}
    for hit in (hit for row in zip_longest(*hit_lists) for hit in row if hit is not None):
        first.setdefault(hit.block_id, hit)
    return list(first.values())


def by_document(hits: Iterable[Hit]) -> list[list[Hit]]:
    """Group hits by document, preserving the order of documents and hits."""
    documents: dict[str, list[Hit]] = {}
    for hit in hits:
        documents.setdefault(hit.doc_id, []).append(hit)
    return list(documents.values())


def fitting(hits: Sequence[Hit], tokens: int) -> list[Hit]:
    """Return the hits that fit into `tokens`, in order. A hit that is too long is skipped in favour of
    shorter ones.

    The first hit is always included, truncated if necessary: a partial passage is better than none.
    """
    room = tokens * LEAST_CHARS_PER_TOKEN
    fitting_hits: list[Hit] = []
    for hit in hits:
        size = _size(hit)
        if size <= room:
            fitting_hits.append(hit)
            room -= size
        elif not fitting_hits:
            return [_cut(hit, room)]
    return fitting_hits


def spread(places: int, count: int) -> list[int]:
    """Return `count` evenly spaced indexes from 0 to `places - 1`, including both ends."""
    if count >= places:
        return list(range(places))
    if count <= 1:
        return [0] if count == 1 else []
    return sorted({round(number * (places - 1) / (count - 1)) for number in range(count)})


def thinned(hits: Sequence[Hit], tokens: int) -> list[Hit]:
    """Return hits that fit into `tokens`, dropping others at even intervals. The first and the last hit are
    kept while at least two fit.
    """
    for count in range(len(hits), 0, -1):
        remaining = [hits[place] for place in spread(len(hits), count)]
        if size_tokens(remaining) <= tokens:
            return remaining
    return []


def size_tokens(hits: Iterable[Hit]) -> int:
    """Estimate the number of prompt tokens that the hits take, including their markup."""
    return sum(_size(hit) for hit in hits) // LEAST_CHARS_PER_TOKEN


def task_message(
    task: str,
    targets: Sequence[tuple[str, str]],
    hits: Sequence[Hit],
    records: Mapping[str, DocumentRecord],
    pages: Sequence[WebHit] = (),
    *,
    listed: Sequence[DocumentRecord] = (),
    then: Literal["work", "report"],
) -> str:
    """Build the user message of a sub-agent's prompt from its task, target documents, passages and web pages.

    Args:
        targets: (doc_id, file name) of the documents that the task is about.
        listed: documents whose metadata was returned by tools.
    """
    target_lines = "\n".join(f"{doc_id}: {filename}" for doc_id, filename in targets)
    parts = [
        element("task", task),
        *([element("targets", target_lines)] if target_lines else []),
        documents_with_blocks(hits, records),
        *([documents_with_summaries(listed)] if listed else []),
        *([web_results(pages)] if pages else []),
        element("next", then),
    ]
    return "\n".join(parts)


def web_results(pages: Iterable[WebHit]) -> str:
    """Render web pages as a `<web_results>` element, each truncated to a maximum length."""
    rows = "\n".join(
        f'<result url="{escape(page.url)}" title="{escape(page.title)}">'
        f"{escape(page.text[:_PAGE_CHARS], quote=False)}</result>"
        for page in pages
    )
    return f"<web_results>\n{rows}\n</web_results>"


def fitting_pages(pages: Sequence[WebHit], tokens: int) -> list[WebHit]:
    """Return as many of the first pages as fit into `tokens`, each truncated to an equal share."""
    room = tokens * LEAST_CHARS_PER_TOKEN
    each = max(min(room // max(len(pages), 1) - _FRAME_CHARS, _PAGE_CHARS), _LEAST_CHARS)
    most = max(room // (each + _FRAME_CHARS), 1)
    return [page.model_copy(update={"text": page.text[:each]}) for page in pages[:most]]


def _size(hit: Hit) -> int:
    return len(hit.content or hit.image_caption or "") + len(hit.heading_path) + _FRAME_CHARS


def _cut(hit: Hit, room: int) -> Hit:
    most = max(room - _FRAME_CHARS - len(hit.heading_path), _LEAST_CHARS)
    return hit.model_copy(
        update={"content": hit.content[:most], "image_caption": (hit.image_caption or "")[:most] or None}
    )
