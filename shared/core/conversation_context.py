"""What a follow-up question takes from the conversation before it. Pure."""

import re
from html import escape

from shared.core.prompts import element
from shared.models.conversation import Conversation, Turn

# "Who wrote it?", "in that report", "dieses Dokument": the document before is meant, not a thing in it.
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
    """`<conversation>` for a prompt, everything in it escaped; empty when nothing was said before."""
    if not conversation.summary and not conversation.turns:
        return ""
    summary = [element("summary", conversation.summary)] if conversation.summary else []
    turns = [part for turn in conversation.turns for part in _turn(turn)]
    return "\n".join(["<conversation>", *summary, *turns, "</conversation>"])


def cited_before(conversation: Conversation) -> Turn | None:
    """The newest turn whose answer cited documents."""
    return next((turn for turn in reversed(conversation.turns) if turn.doc_ids), None)


def points_back(question: str) -> bool:
    """Whether a question speaks of a document that it does not name: "that report", "who wrote it?"."""
    return _BACK.search(question) is not None


def _turn(turn: Turn) -> list[str]:
    said = [f'<turn role="user">{escape(turn.question, quote=False)}</turn>']
    if turn.answer:
        documents = f' documents="{escape(", ".join(turn.filenames))}"' if turn.filenames else ""
        said.append(f'<turn role="assistant"{documents}>{escape(turn.answer, quote=False)}</turn>')
    return said
