"""WebReport: what pages of the web say of the task, which sites agree, and how far each can be trusted."""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from pydantic import JsonValue

from local.model_server.answers.markup import statement
from local.model_server.answers.rows import likeness, numbers_of
from local.model_server.answers.support import judge_support
from local.model_server.prompt_reader import Block, Document, WebPage
from local.model_server.reports.assignment import Assignment
from local.model_server.reports.doc_reader import says_the_same
from local.model_server.reports.wording import Wording, wording_for
from local.model_server.text.asked import asked_of
from local.model_server.text.passages import Passage, passages_of
from local.model_server.text.ranking import rank_passages

MAX_CLAIMS = 4
MAX_NOTES = 4  # as the prompt allows
FIT_FOR_CLAIM = 0.8  # share of the best score; unmeasured
SAYS_IT_TOO = 0.4  # shared words of all words, with the same numbers; unmeasured
_OFFICIAL = re.compile(r"\.(?:gov|edu|mil|int|europa\.eu|ac|bund\.de)(?:\.\w{2})?$")
_EDITABLE = re.compile(r"(?:^|\.)(?:wiki\w*|reddit|stackexchange|stackoverflow|quora|medium)\.")


def write_web_report(assignment: Assignment) -> dict[str, JsonValue]:
    """{"claims": [{"text", "sources"}], "trust_notes": […]}; claims that several sites make come first."""
    wording = wording_for(assignment.question)
    passages = passages_of([_as_document(page) for page in assignment.pages])
    claims = [[passage, *_agreeing(passage, passages)] for passage in _chosen(assignment, passages)]
    claims.sort(key=lambda said: -len({_site(passage) for passage in said}))
    return {
        "claims": [
            {"text": statement(said[0]), "sources": [_source(one) for one in said]} for said in claims
        ],
        "trust_notes": list[JsonValue](_trust_notes(assignment, claims, wording))[:MAX_NOTES],
    }


def _as_document(page: WebPage) -> Document:
    return Document(page.url, {"title": page.title}, (Block(page.text),))


def _chosen(assignment: Assignment, passages: Sequence[Passage]) -> list[Passage]:
    asked = asked_of(assignment.question)
    ranked = rank_passages(asked, passages, assignment.embedder)
    if not judge_support(asked, ranked, passages, assignment.embedder).is_enough:
        return []
    chosen: list[Passage] = []
    for item in ranked:
        if item.score < FIT_FOR_CLAIM * ranked[0].score or len(chosen) == MAX_CLAIMS:
            break
        if not any(
            _says_it_too(item.passage, other) or says_the_same(item.passage, other) for other in chosen
        ):
            chosen.append(item.passage)
    return chosen


def _agreeing(passage: Passage, passages: Sequence[Passage]) -> list[Passage]:
    """What other sites say alike, one passage of each."""
    found: dict[str, Passage] = {}
    for other in passages:
        if _site(other) != _site(passage) and _says_it_too(passage, other):
            found.setdefault(_site(other), other)
    return list(found.values())


def _says_it_too(one: Passage, other: Passage) -> bool:
    return set(numbers_of(one)) == set(numbers_of(other)) and likeness(one, other) >= SAYS_IT_TOO


def _site(passage: Passage) -> str:
    return site_of(passage.document.doc_id)


def site_of(url: str) -> str:
    """The host of an address, without "www."; the address itself when it has none."""
    return (urlsplit(url).hostname or url).removeprefix("www.")


def _source(passage: Passage) -> JsonValue:
    page = passage.document
    return {"url": page.doc_id, "title": page.attributes.get("title", ""), "quote": passage.quote}


def _trust_notes(
    assignment: Assignment, claims: Sequence[Sequence[Passage]], wording: Wording
) -> dict[str, None]:
    if not claims:
        return dict.fromkeys([wording.no_claims if assignment.pages else wording.no_pages])
    notes: dict[str, None] = {}
    for said in claims:
        sites = list(dict.fromkeys(_site(passage) for passage in said))
        told = wording.several_sites.format(len(sites), ", ".join(sites))
        notes[told if len(sites) > 1 else wording.one_site.format(sites[0])] = None
    sites = list(dict.fromkeys(_site(passage) for said in claims for passage in said))
    return notes | dict.fromkeys(_kind(site, wording) for site in sites)


def _kind(site: str, wording: Wording) -> str:
    if _OFFICIAL.search(site):
        return wording.official.format(site)
    return (wording.editable if _EDITABLE.search(site) else wording.unknown_site).format(site)
