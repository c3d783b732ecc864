"""What a sub-agent is shown: its passages within their limit, its task, results of tools. Pure.

Everything that was found is data: escaped, so that nothing in it can close an element or open another.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import zip_longest
from typing import Literal

from shared.answering.budget import CHARS_PER_TOKEN
from shared.evidence.document_prompt import documents_with_blocks, documents_with_summaries
from shared.platform.prompts import element
from shared.retrieval.models import DocumentRecord, Hit
from shared.tools.models import WebHit

_FRAME_CHARS = 120  # of the element around a block, and a share of its document's
_LEAST_CHARS = 400  # a shortened text keeps at least this many
_PAGE_CHARS = 6_000  # of one page of the web (unmeasured)


def in_turns(found: Iterable[Sequence[Hit]]) -> list[Hit]:
    """The best of each list, then the second of each, and so on; each block once."""
    first: dict[str, Hit] = {}
    for hit in (hit for row in zip_longest(*found) for hit in row if hit is not None):
        first.setdefault(hit.block_id, hit)
    return list(first.values())


def by_document(hits: Iterable[Hit]) -> list[list[Hit]]:
    """The hits of each document, in their order."""
    documents: dict[str, list[Hit]] = {}
    for hit in hits:
        documents.setdefault(hit.doc_id, []).append(hit)
    return list(documents.values())


def fitting(hits: Sequence[Hit], tokens: int) -> list[Hit]:
    """As many of the hits, in their order, as fit; one that is too long makes room for shorter ones.

    The first is always there, cut if need be: a passage that is shown in part is better than none.
    """
    room = tokens * CHARS_PER_TOKEN
    kept: list[Hit] = []
    for hit in hits:
        size = _size(hit)
        if size <= room:
            kept.append(hit)
            room -= size
        elif not kept:
            return [_cut(hit, room)]
    return kept


def spread(places: int, count: int) -> list[int]:
    """`count` places of so many, evenly apart, the first and the last included."""
    if count >= places:
        return list(range(places))
    if count <= 1:
        return [0] if count == 1 else []
    return sorted({round(number * (places - 1) / (count - 1)) for number in range(count)})


def thinned(hits: Sequence[Hit], tokens: int) -> list[Hit]:
    """As many of the hits as fit, left out evenly: the beginning and the end stay."""
    for count in range(len(hits), 0, -1):
        kept = [hits[place] for place in spread(len(hits), count)]
        if size_tokens(kept) <= tokens:
            return kept
    return []


def size_tokens(hits: Iterable[Hit]) -> int:
    """How many tokens some passages take in a prompt, about."""
    return sum(_size(hit) for hit in hits) // CHARS_PER_TOKEN


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
    """The message of the user.

    Args:
        targets: (doc_id, file name) of the documents that the task is about.
        listed: documents of which tools told what is known of them.
    """
    named = "\n".join(f"{doc_id}: {filename}" for doc_id, filename in targets)
    parts = [
        element("task", task),
        *([element("targets", named)] if named else []),
        documents_with_blocks(hits, records),
        *([documents_with_summaries(listed)] if listed else []),
        *([web_results(pages)] if pages else []),
        element("next", then),
    ]
    return "\n".join(parts)


def web_results(pages: Iterable[WebHit]) -> str:
    """`<web_results>` with each page, its text cut."""
    rows = "\n".join(
        f'<result url="{escape(page.url)}" title="{escape(page.title)}">'
        f"{escape(page.text[:_PAGE_CHARS], quote=False)}</result>"
        for page in pages
    )
    return f"<web_results>\n{rows}\n</web_results>"


def fitting_pages(pages: Sequence[WebHit], tokens: int) -> list[WebHit]:
    """As many pages as fit, in their order, each cut to its share."""
    room = tokens * CHARS_PER_TOKEN
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
