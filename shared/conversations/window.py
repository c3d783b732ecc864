"""Selection of the parts of a conversation that the prompt of a follow-up question includes. Pure."""

import re
from collections.abc import Sequence
from html import escape

from shared.conversations.models import MAX_TITLE_CHARS, Thread, ThreadTurn
from shared.evidence.messages import ENGLISH, GERMAN, OTHER_LANGUAGE
from shared.evidence.models import AnswerFigure, Citation
from shared.platform.prompts import element
from shared.runs.models import Conversation, ConversationTurn, RunAnswer

# Maximum length of the question in a stored turn. The full question is stored with its run.
QUESTION_CHARS = 4000
# Maximum length of the answer in a stored turn: about 500 tokens, the usual length of an answer.
ANSWER_CHARS = 2000
# Maximum length of the conversation in a prompt, about 3,000 tokens (unmeasured).
CONVERSATION_CHARS = 12_000
SUMMARY_CHARS = 2000
# Maximum length of an answer in episodic memory, enough to recognise it.
MEMORY_CHARS = 600
# Maximum number of documents stored with a turn.
MAX_DOCUMENTS = 10
# Maximum number of blocks stored with a turn. A follow-up question reads them again, about 1,500 tokens.
MAX_BLOCKS = 8
# Maximum number of turns summarised by one model call: at most 72,000 characters.
MAX_FOLDED = 12
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
# Matches a citation mark, with the spaces before it and any spaces between it and punctuation. A match starts
# only at the first space, because trying each space of a long run would take quadratic time.
_REFERENCE = re.compile(
    r"(?<![ \t])[ \t]*\(Source: [^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)\[\d+\](?:[ \t]+(?=[.,;:!?]))?"
)
_REMARK = re.compile(
    "|".join(
        r"\s*" + re.escape(remark.strip()).replace(re.escape("{}"), r"[^\n]*?")
        for words in (ENGLISH, GERMAN, OTHER_LANGUAGE)
        for remark in (words.unsupported, words.unproved, words.unsourced, words.note)
    )
)
_PICTURE = re.compile(r"!\[([^\]\n]*)\]\([^)\n]*\)")


def excerpt(text: str, limit: int) -> str:
    """Return the beginning of a text, cut between words. Control characters except line breaks are
    removed.
    """
    clean = _CONTROL.sub(" ", text).strip()
    if len(clean) <= limit:
        return clean
    cut = clean[: limit - 1]
    at_word = re.sub(r"\s+\S*\Z", "", cut)
    return f"{at_word if len(at_word) > limit // 2 else cut}…"


def title_of(question: str) -> str:
    """Return a thread title of one line, made from the first question."""
    return excerpt(" ".join(question.split()), MAX_TITLE_CHARS)


def answered(turn: ThreadTurn, answer: RunAnswer) -> ThreadTurn:
    """Return the turn with the answer data that later questions need. URLs of pictures are removed."""
    cited: dict[str, str] = {}
    sources: tuple[Citation | AnswerFigure, ...] = (*answer.citations, *answer.figures)
    for source in sources:
        # Web pages have no document id.
        if source.doc_id:
            cited.setdefault(source.doc_id, source.filename)
    documents = list(cited.items())[:MAX_DOCUMENTS]
    blocks = dict.fromkeys(citation.block_id for citation in answer.citations if citation.block_id)
    return turn.model_copy(
        update={
            "status": "answered",
            "answer": excerpt(plain_answer(answer.text), ANSWER_CHARS),
            "doc_ids": tuple(doc_id for doc_id, _ in documents),
            "filenames": tuple(excerpt(filename, 256) for _, filename in documents),
            "block_ids": tuple(blocks)[:MAX_BLOCKS],
            "is_remembered": answer.abstained,
        }
    )


def plain_answer(text: str) -> str:
    """Return an answer without source references, URLs of pictures and the notes that the app appended."""
    return _REMARK.sub("", _REFERENCE.sub("", _PICTURE.sub(r"\1", text))).strip()


def current_turns(turns: Sequence[ThreadTurn], replaced: str | None = None) -> list[ThreadTurn]:
    """Return the turns that belong to the history of the next question, oldest first. Turns whose question
    was replaced by a later version are left out.

    A turn that replaces another follows what came before that one. What followed the earlier version is
    left out.

    Args:
        turns: the newest of a thread, in any order.
        replaced: run that the next question replaces; None = it follows the newest turn.
    """
    path: list[ThreadTurn] = []
    before: dict[str, list[ThreadTurn]] = {}
    for turn in sorted(turns, key=lambda turn: turn.number):
        if turn.replaces:
            # A run that isn't among these turns is older than all of them.
            path = before.get(turn.replaces, [])
        before[turn.run_id] = path
        path = [*path, turn]
    return before.get(replaced, []) if replaced else path


def conversation_from(
    thread: Thread, turns: Sequence[ThreadTurn], replaced: str | None = None
) -> Conversation:
    """Return the thread's summary, and as many of its newest turns as fit into a prompt, oldest first.

    Args:
        turns: of the thread, in any order; summarised, replaced, cleared and erased ones are skipped.
        replaced: run that the next question replaces.
    """
    covered = max(thread.summarised_count, thread.cleared_count)
    left = CONVERSATION_CHARS - len(thread.summary)
    chosen: list[ConversationTurn] = []
    for turn in reversed(current_turns(turns, replaced)):
        left -= len(turn.question) + len(turn.answer)
        if turn.number <= covered or turn.status == "erased" or left < 0:
            break
        chosen.append(ConversationTurn.model_validate(turn, from_attributes=True))
    return Conversation(summary=thread.summary, turns=tuple(reversed(chosen)), web_allowed=thread.web_allowed)


def turns_to_fold(thread: Thread, turns: Sequence[ThreadTurn], most: int) -> list[ThreadTurn]:
    """Return the turns that must be summarised now, oldest first. The list is empty while at most `most`
    turns have no summary.

    Half of `most` remain, so the model is called once every few turns.
    """
    covered = max(thread.summarised_count, thread.cleared_count)
    waiting = [turn for turn in current_turns(turns) if turn.number > covered]
    if len(waiting) <= most:
        return []
    return waiting[: min(len(waiting) - max(most // 2, 1), MAX_FOLDED)]


def summary_material(previous: str, turns: Sequence[ThreadTurn]) -> str:
    """Return the input of the model call that summarises a conversation: the previous summary, and the
    marked-up questions and answers since then.
    """
    lines = "\n".join(
        f'<turn role="user">{escape(turn.question, quote=False)}</turn>\n'
        f'<turn role="assistant">{escape(turn.answer or "(no answer)", quote=False)}</turn>'
        for turn in turns
    )
    return f"{element('previous_summary', previous)}\n<conversation>\n{lines}\n</conversation>"


# Phrases such as "Who wrote it?", "in that report" and "dieses Dokument" refer to an earlier document.
_KIND = (
    r"(?:documents?|files?|reports?|manuals?|polic(?:y|ies)|guides?|handbooks?|contracts?|papers?|memos?|"
    r"dokumente?s?|datei(?:en)?|berichte?s?|handb[uü]ch(?:er|s)?|richtlinien?|vertr[aä]ge?s?|leitf[aä]den)"
)

_BACK = re.compile(
    rf"\b(?:that|this|these|those|the same|dies\w*|jene\w*|dem\s?selben|derselben|dasselbe)\s+{_KIND}\b"
    r"|\b(?:who|when|wer|wann)\b.{0,40}\b(?:wrote|written|published|uploaded|updated|created|verfasst|"
    r"geschrieben|veröffentlicht|erstellt)\b.{0,20}\b(?:it|they|them|es|ihn|sie|das)\b"
    r"|\b(?:who|when|wer|wann)\b.{0,20}\b(?:it|they|them|es|er|ihn|sie|das)\b.{0,20}\b(?:wrote|written|published|"
    r"uploaded|updated|created|verfasst|geschrieben|veröffentlicht|erstellt)\b"
    r"|\b(?:summari[sz]e|summary of|fasse?)\s+(?:it|them|this|that|es|sie|das|ihn)\b"
    r"|\bin (?:it|there|that one|this one)\b|\b(?:darin|daraus)\b",
    re.IGNORECASE,
)


def conversation_element(conversation: Conversation) -> str:
    """Return the escaped `<conversation>` element for a prompt, or "" if there are no earlier turns."""
    if not conversation.summary and not conversation.turns:
        return ""
    summary = [element("summary", conversation.summary)] if conversation.summary else []
    turns = [part for turn in conversation.turns for part in _turn_elements(turn)]
    return "\n".join(["<conversation>", *summary, *turns, "</conversation>"])


def cited_before(conversation: Conversation) -> ConversationTurn | None:
    """Return the newest turn whose answer cited documents, or None."""
    return next((turn for turn in reversed(conversation.turns) if turn.doc_ids), None)


def points_back(question: str) -> bool:
    """Return whether a question refers to a document without naming it, as in "that report" or "who wrote
    it?".
    """
    return _BACK.search(question) is not None


def _turn_elements(turn: ConversationTurn) -> list[str]:
    elements = [f'<turn role="user">{escape(turn.question, quote=False)}</turn>']
    if turn.answer:
        documents = f' documents="{escape(", ".join(turn.filenames))}"' if turn.filenames else ""
        elements.append(f'<turn role="assistant"{documents}>{escape(turn.answer, quote=False)}</turn>')
    return elements
