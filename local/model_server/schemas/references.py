"""Documents that a question names: file names, quoted titles, "the X manual". Pure."""

import re

_FILE = re.compile(
    r"[\w][\w.-]*\.(?:pdf|docx?|pptx?|xlsx?|csv|md|html?|txt|vtt|srt|png|jpe?g)\b", re.IGNORECASE
)
_QUOTED = re.compile(r"[\"“„«]([^\"”“»]{3,100})[\"”“»]")
_KINDS = (
    r"(?:annual report|price list|price table|user guide|manual|report|policy|guide|handbook|contract|"
    r"agreement|presentation|minutes|brochure|specification|datasheet|whitepaper|paper|invoice|plan)"
)
_WORD_OF_NAME = r"(?!(?:of|the|and|with|from|in|to)\b)[\w&'.-]+"
_ENGLISH = re.compile(
    r"\b(?:the|our|this|of|in|between|and|with|versus|vs\.?|compare|summari[sz]e|from|to)\s+"
    rf"((?:{_WORD_OF_NAME}\s+){{1,4}}?{_KINDS}(?:\s+(?:from\s+)?(?:19|20)\d\d)?)\b",
    re.IGNORECASE,
)
_VERSION = re.compile(rf"\b({_KINDS}\s+(?:from|of|for)\s+(?:\w+\s+)?(?:19|20)\d\d)\b", re.IGNORECASE)
_GERMAN = re.compile(
    r"\b(?:der|die|das|dem|den|des|im|vom|zum)\s+((?:[\w-]+\s+)?(?:[A-ZÄÖÜ][\w-]*\s+)?[A-ZÄÖÜ][\w-]*"
    r"(?:handbuch|bericht|richtlinie|leitfaden|vertrag|preisliste|anleitung|plan|protokoll)\w{0,2}(?:\s+(?:19|20)\d\d)?)\b"
)
_NOT_NAMES = frozenset(
    "which what document documents a an any each every same whole other first second".split()
)
MAX_REFERENCES = 4


def find_references(question: str) -> list[str]:
    """As the question words them, each once, at most four."""
    found = [*_FILE.findall(question), *_QUOTED.findall(question)]
    for pattern in (_ENGLISH, _VERSION, _GERMAN):
        found += [phrase for phrase in pattern.findall(question) if _is_name(phrase)]
    unique = dict.fromkeys(reference.strip() for reference in found)
    return [one for one in unique if not any(one != other and one in other for other in unique)][
        :MAX_REFERENCES
    ]


def _is_name(phrase: str) -> bool:
    return not _NOT_NAMES & set(phrase.lower().split())
