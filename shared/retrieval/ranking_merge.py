"""Merging of the rankings of several phrasings into one order of hits. Spreadsheets may not crowd out other
documents. No I/O.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from shared.platform.names import TABLE_SUFFIXES
from shared.retrieval.block_requests import CANDIDATES
from shared.retrieval.fusion import fuse_ranks
from shared.retrieval.models import Hit
from shared.retrieval.rankings import Ranking, text_key_of

# Number of blocks of a spreadsheet that keep their rank. Not measured.
_MAX_ROW_BLOCKS = 3


def merge_rankings(rankings: Sequence[Ranking]) -> list[Hit]:
    """Merge the rankings by reciprocal rank and return the hits, best first. A block found several times
    keeps its highest score.
    """
    named_ids = named_by(rankings)
    if len(rankings) == 1:
        return spreadsheets_last(rankings[0].hits, named_ids)
    best: dict[str, Hit] = {}
    for hit in (hit for ranking in rankings for hit in ranking.hits):
        if hit.block_id not in best or best[hit.block_id].score < hit.score:
            best[hit.block_id] = hit
    ranked = fuse_ranks([[hit.block_id for hit in ranking.hits] for ranking in rankings])
    return spreadsheets_last([best[block_id] for block_id, _ in ranked], named_ids)


def spreadsheets_last(hits: Iterable[Hit], named_ids: Collection[str]) -> list[Hit]:
    """Move all but the best blocks of each spreadsheet after the other hits, unless the question names it
    (decision 0094).

    Args:
        named_ids: ids of documents that the question names.
    """
    counts = Counter[str]()
    first: list[Hit] = []
    later: list[Hit] = []
    for hit in hits:
        counts[hit.doc_id] += _is_of_spreadsheet(hit, named_ids)
        (later if counts[hit.doc_id] > _MAX_ROW_BLOCKS else first).append(hit)
    return first + later


def _is_of_spreadsheet(hit: Hit, named_ids: Collection[str]) -> bool:
    is_rows = hit.block_type == "text" and hit.filename.lower().endswith(TABLE_SUFFIXES)
    return is_rows and hit.doc_id not in named_ids


def crowding_spreadsheets(rankings: Sequence[Ranking], top_k: int) -> set[str]:
    """Return the ids of spreadsheets that leave fewer than `top_k / 2` of the candidates to other documents.

    Empty if every block of a match is a candidate, or if the search is limited to such spreadsheets.
    """
    named_ids = named_by(rankings)
    hits = [hit for ranking in rankings for hit in ranking.hits]
    others = {hit.block_id for hit in hits if not _is_of_spreadsheet(hit, named_ids)}
    if len(others) >= top_k / 2 or all(len(ranking.hits) < CANDIDATES for ranking in rankings):
        return set()
    crowding = {hit.doc_id for hit in hits if _is_of_spreadsheet(hit, named_ids)}
    limit = rankings[0].filters.get("doc_id")
    doc_ids = set(limit) if isinstance(limit, list | tuple) else {limit}
    return set() if doc_ids <= crowding else crowding


def documents_to_check(best: Iterable[Hit], ordered: Iterable[Hit]) -> set[str]:
    """Return the ids of documents to check: the documents of the best hits, and documents that contain a copy
    of the same text (see `originals_first`).
    """
    doc_ids = {hit.doc_id for hit in best}
    words = {text_key_of(hit.block_id) for hit in best} - {""}
    return doc_ids | {hit.doc_id for hit in ordered if text_key_of(hit.block_id) in words}


def named_by(rankings: Iterable[Ranking]) -> set[str]:
    """Return the ids of the documents that the question names."""
    return set[str]().union(*(ranking.named_ids for ranking in rankings))
