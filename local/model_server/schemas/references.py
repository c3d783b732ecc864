"""Documents that a question names: file names, quoted titles, "the X manual", "laut Jahresbericht". Pure."""

import re

from local.model_server.schemas.cue_spelling import mend

_FILE = re.compile(
    r"[\w][\w.-]*\.(?:pdf|docx?|pptx?|xlsx?|csv|md|html?|txt|vtt|srt|png|jpe?g)\b", re.IGNORECASE
)
_QUOTED = re.compile(r"[\"“„«]([^\"”“»]{3,100})[\"”“»]")
_KINDS = (
    r"(?:annual report|price list|price table|user guide|manual|report|policy|guide|guideline|handbook|"
    r"contract|"
    r"agreement|lease|presentation|minutes|brochure|specification|datasheet|whitepaper|paper|invoice|"
    r"plan|concept|"
    r"study|protocol|regulation|application|code|statute|memo|memorandum|certificate|tender|review|audit|"
    r"assessment|strategy|proposal|checklist|catalogue)"
)
_GERMAN_KINDS = (
    r"(?:handb[uü]ch|bericht|richtlinie|leitf[aä]den|vertr[aä]g|preisliste|anleitung|anweisung|pl[aä]n|"
    r"protokoll|"
    r"konzept|vereinbarung|satzung|gutachten|studie|ordnung|merkblatt|lastenheft|pflichtenheft|datenblatt|"
    r"verzeichnis|strategie|präsentation|broschüre)"
)
_BEFORE = (
    r"(?:the|our|this|your|of|in|between|and|with|versus|vs\.?|compare|summari[sz]e|from|to|outline|"
    r"der|die|das|dem|den|des|im|vom|zum|und|laut|gemäß|unser\w*)"
)
# Articles, and what links one name with another: no part of a name. Nor is a German kind: in "does the
# Jahresbericht report" the English word is a verb.
_WORD_OF_NAME = (
    r"(?!(?:of|the|and|with|from|in|to|our|this|that|your|a|an|der|die|das|dem|den|des|im|und|is|are|was|"
    r"does|do|did|say|"
    rf"says|according|by|for|on|which|what)\b|[\w-]*{_GERMAN_KINDS}\w{{0,2}}\b)[\w&'.-]+"
)
_YEAR = r"(?:19|20)\d\d"
_ENGLISH = re.compile(
    rf"\b{_BEFORE}\s+((?:{_WORD_OF_NAME}\s+){{1,4}}?{_KINDS}(?:\s+(?:from\s+)?{_YEAR})?)(?!-)\b",
    re.IGNORECASE,
)
_VERSION = re.compile(rf"\b({_KINDS}\s+(?:from|of|for)\s+(?:\w+\s+)?{_YEAR})\b", re.IGNORECASE)
# "the minutes of the works council", "the code of conduct": the name follows its kind.
_OF_WHAT = re.compile(
    rf"\b{_BEFORE}\s+((?:{_WORD_OF_NAME}\s+){{0,2}}?(?:minutes|code|statutes?|rules|terms)\s+of\s+(?:the\s+)?"
    rf"{_WORD_OF_NAME}(?:\s+(?:council|committee|board|meeting|assembly|conduct|use|service|procedure|"
    r"business))?)\b",
    re.IGNORECASE,
)
_GERMAN = re.compile(
    r"\b(?i:der|die|das|dem|den|des|im|vom|zum|laut|gemäß|nach|aus|the|our|unser\w*)\s+"
    r"((?:(?!(?:der|die|das|dem|den|des|unser\w*)\b)[\w-]+\s+)?"
    rf"(?:[A-ZÄÖÜ][\w-]*\s+)?[A-ZÄÖÜ][\w-]*{_GERMAN_KINDS}\w{{0,2}}(?:\s+{_YEAR})?)\b"
)
_MORE_YEARS = re.compile(rf"(?:\s*(?:,|und|and|or|oder|to|bis|mit|with|vs\.?)\s+({_YEAR}))+", re.IGNORECASE)
_ENDS_WITH_YEAR = re.compile(rf"\s{_YEAR}$")
_NOT_NAMES = frozenset(
    "which what document documents a an any each every same whole other first second all both".split()
)
MAX_REFERENCES = 4


def find_references(question: str) -> list[str]:
    """As the question words them, each once, at most four."""
    found = [*_FILE.findall(question), *_QUOTED.findall(question)]
    mended = mend(question)
    for pattern in (_ENGLISH, _VERSION, _OF_WHAT, _GERMAN):
        for match in pattern.finditer(mended):
            if _is_name(match.group(1)):
                found += [_as_asked(name, question, mended) for name in _of_each_year(match, mended)]
    unique = dict.fromkeys(reference.strip() for reference in found)
    return [one for one in unique if not any(one != other and one in other for other in unique)][
        :MAX_REFERENCES
    ]


def _of_each_year(match: re.Match[str], text: str) -> list[str]:
    """ "the annual reports 2021 and 2022" are two names."""
    name = match.group(1)
    more = _MORE_YEARS.match(text, match.end(1))
    if not more or not _ENDS_WITH_YEAR.search(name):
        return [name]
    years = re.findall(_YEAR, more.group())
    return [name, *(_ENDS_WITH_YEAR.sub(f" {year}", name) for year in years)]


def _as_asked(name: str, question: str, mended: str) -> str:
    """The words that the question has in the place of a name; mending leaves their number as it was."""
    asked, right = question.split(), mended.split()
    before, found, _ = mended.partition(name)
    if len(asked) != len(right) or not found:
        return name
    first = len(before.split())
    return " ".join(asked[first : first + len(name.split())]).strip(".,;:?!()")


def _is_name(phrase: str) -> bool:
    return not _NOT_NAMES & set(phrase.lower().split())
