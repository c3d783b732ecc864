"""Which of the documents at hand a question is about, and whether it is about several at once. Pure.

Beside the documents that are meant a search finds others. A document that lacks the names of the question,
while others have them, is none of those that are meant, unless its title or file is akin to one of theirs:
"2023 report Miller.pdf" belongs to "2022 report Miller.pdf", also where no passage at hand says "Miller".
"""

import re
from collections.abc import Sequence

from local.model_server.prompt_reader import Document
from local.model_server.text.names import names_of, occurs
from local.model_server.text.words import stem, stems_of

_DOCUMENTS = (
    r"(?:documents|reports|filings|manuals|editions|versions|contracts|policies|studies|minutes|[\w-]*\d[\w-]*s|"
    r"dokumente[nr]?|berichte[n]?|handbücher[n]?|ausgaben|fassungen|versionen|verträge[n]?|richtlinien|studien|"
    r"protokolle[n]?)"
)
_TIMES = r"(?:periods|quarters|years|months|quartale[n]?|jahre[n]?|monate[n]?)"
_THESE = (
    r"(?:these|those|all|each of|every one of|the (?:reported|reporting|various|different)|"
    r"diese[nr]?|alle[nr]?)"
)
_BOTH = r"(?:both|the (?:two|three|four|five)|beide[nr]?|jede[sm]? der|die (?:zwei|drei|vier|fünf))"
_SEVERAL = re.compile(
    rf"\b{_THESE}\s+(?:[\w'-]+\s+){{0,2}}?(?:{_DOCUMENTS}|{_TIMES})\b|"
    rf"\b{_BOTH}\s+(?:[\w'-]+\s+){{0,2}}?{_DOCUMENTS}\b|"
    r"[’']s\s+(?:[\w-]+\s+){0,2}?(?:reports|filings|manuals|contracts|minutes)\b|"
    rf"\b(?:across|throughout|quer durch)\b.{{0,30}}\b(?:{_DOCUMENTS}|{_TIMES})\b",
    re.IGNORECASE,
)


def is_about_several(question: str) -> bool:
    """Whether a question speaks of several documents, or of several times, together."""
    return _SEVERAL.search(question) is not None


def meant_documents(question: str, documents: Sequence[Document]) -> list[Document]:
    """The documents that are meant; all of them where names tell nothing, or tell of one alone."""
    names = [stem(name) for name in names_of(question) if not any(letter.isdigit() for letter in name)]
    named = [document for document in documents if _has_any(names, document)]
    if len(named) < 2:
        return list(documents)
    common = frozenset.intersection(*map(_own_words, documents))
    kin = frozenset().union(*map(_own_words, named)) - common
    return [one for one in documents if one in named or _own_words(one) & kin]


def _has_any(names: Sequence[str], document: Document) -> bool:
    texts = " ".join(f"{block.heading} {block.text}" for block in document.blocks)
    held = set(stems_of(f"{document.title} {document.filename} {texts}"))
    return any(occurs(name, held) for name in names)


def _own_words(document: Document) -> frozenset[str]:
    """Stems of the words of its title and file, numbers left out."""
    stems = stems_of(f"{document.title} {document.filename}")
    return frozenset(one for one in stems if not any(letter.isdigit() for letter in one))
