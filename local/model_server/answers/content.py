"""Answers a question with the few sentences and table rows that say it, each cited; else abstains."""

from collections.abc import Iterable, Sequence

from local.model_server.answers.disagreement import disagreement, find_disagreement
from local.model_server.answers.markup import abstain, cite, plain, statement
from local.model_server.answers.material import Material
from local.model_server.answers.notes import noted_passages
from local.model_server.answers.phrases import phrases_for
from local.model_server.answers.rows import MIN_SCORE, rank_each
from local.model_server.answers.subjects import is_about_several, meant_documents
from local.model_server.answers.support import judge_support
from local.model_server.text.asked import asked_of
from local.model_server.text.parts import question_parts
from local.model_server.text.passages import Passage, passages_of
from local.model_server.text.ranking import Ranked, rank_passages
from local.model_server.text.words import content_words, stem

MAX_STATEMENTS = 4
CLOSE_TO_BEST = 0.95  # share of the best score that a further sentence needs: see docs/model-server.md
STATEMENTS_OF_PART = 2
MAX_LIST_ITEMS = 6
NEAR_SEVERAL = 0.2  # likelihood from which each document's nearest passage is told; unmeasured
SAME_STATEMENT = 0.7  # share of common words from which two sentences say the same


def answer_content(material: Material) -> str:
    """Markdown with one cite tag after each statement, or the abstain tag alone."""
    passages = passages_of(material.documents)
    asked = asked_of(material.question)
    ranked = rank_passages(asked, passages, material.embedder)
    support = judge_support(asked, ranked, passages, material.embedder)
    if not support.is_enough:
        # What is asked of several documents may stand in no single passage: what each says, and what lacks.
        nearest = _of_other_documents(material, asked, set()) if support.score >= NEAR_SEVERAL else []
        return "\n\n".join([*(["\n".join(nearest)] if nearest else []), abstain_from(material.question)])
    chosen = _choose_for_parts(material, passages) or choose(ranked)
    paragraphs = [_paragraph(group) for group in _with_list_items(chosen, passages)]
    if differing := find_disagreement(chosen, passages):
        paragraphs.insert(1, disagreement(differing, phrases_for(material.question)))
    told = {passage.document.doc_id for passage in chosen}
    if others := _of_other_documents(material, asked, told):
        paragraphs.append("\n".join([phrases_for(material.question).by_document, "", *others]))
    return "\n\n".join(paragraphs)


def _of_other_documents(material: Material, asked: str, told: set[str]) -> list[str]:
    """For a question about several documents: what each says that the answer has not cited yet."""
    documents = [document for document in material.documents if document.blocks]
    if len(documents) < 2 or not is_about_several(asked):
        return []
    noted = {passage.document.doc_id: passage for passage in noted_passages(material.findings, documents)}
    meant = meant_documents(asked, documents)
    ranked = rank_each(asked, meant, material.embedder)
    lines = []
    for document in meant:
        near = [item.passage for item in ranked[document.doc_id][:1] if item.score >= MIN_SCORE]
        passages = [noted[document.doc_id]] if document.doc_id in noted else near
        if passages and document.doc_id not in told:
            lines.append(f"- **{plain(document.title)}** ({plain(document.filename)}): {_said(passages[0])}")
    return lines


def _said(passage: Passage) -> str:
    return f"{statement(passage)} {cite(passage)}"


def _choose_for_parts(material: Material, passages: Sequence[Passage]) -> list[Passage]:
    """The best passages for each question inside the question; none when there is only one."""
    parts = question_parts(asked_of(material.question))
    if len(parts) < 2:
        return []
    chosen: dict[str, Passage] = {}
    for part in parts[:MAX_STATEMENTS]:
        ranked = rank_passages(part, passages, material.embedder)
        if judge_support(part, ranked, passages, material.embedder).is_enough:
            chosen |= {passage.quote: passage for passage in choose(ranked)[:STATEMENTS_OF_PART]}
    return list(chosen.values())[:MAX_STATEMENTS]


def abstain_from(question: str) -> str:
    """The abstention for a question, in its language."""
    phrases = phrases_for(question)
    return abstain(phrases.missing.format(question.strip().rstrip("?")), phrases.next_step)


def choose(ranked: Sequence[Ranked]) -> list[Passage]:
    """The best passage, and up to three more that are nearly as good and say something else."""
    chosen: list[Passage] = []
    for item in ranked:
        if item.score < CLOSE_TO_BEST * ranked[0].score or len(chosen) == MAX_STATEMENTS:
            break
        if not any(_says_the_same(item.passage, other) for other in chosen):
            chosen.append(item.passage)
    return chosen


def _says_the_same(one: Passage, other: Passage) -> bool:
    first, second = _stems(one), _stems(other)
    return len(first & second) >= SAME_STATEMENT * max(1, min(len(first), len(second)))


def _stems(passage: Passage) -> set[str]:
    return {stem(word) for word in content_words(passage.reading)}


def _with_list_items(chosen: Sequence[Passage], passages: Sequence[Passage]) -> list[list[Passage]]:
    """Each chosen passage with what it announces: "Bring along:" is no answer without its list."""
    groups: list[list[Passage]] = []
    taken: set[str] = set()
    for passage in chosen:
        if passage.quote in taken:
            continue
        group = [passage, *(_announced(passage, passages) if passage.quote.endswith(":") else ())]
        taken.update(member.quote for member in group)
        groups.append(group)
    return groups


def _announced(passage: Passage, passages: Iterable[Passage]) -> list[Passage]:
    following = [
        other
        for other in passages
        if other.block_index == passage.block_index and other.position > passage.position
    ]
    return following[:MAX_LIST_ITEMS]


def _paragraph(group: Sequence[Passage]) -> str:
    first, *items = map(_said, group)
    return "\n".join([first, *(f"- {item}" for item in items)])
