"""Mends misspelt cue words ("comapre"), so that the rules know each in one spelling only. Pure.

Only words that give a question's kind away are mended, and only when one slip leads to them (two in long
words): names and the subject of a question stay as they are written.
"""

import re
from functools import lru_cache

from local.model_server.text.languages import STOP_WORDS

ONE_SLIP_FROM = 5  # letters of the cue; one slip in a shorter one is too often another word ("list", "last")
TWO_SLIPS_FROM = 10
_SHORTEST_COMPOUND = 9
_WORD = re.compile(r"[^\W\d_]+")
_CUES = (
    # What documents are called.
    "document documents files manual manuals handbook handbooks guide guides guideline guidelines report "
    "reports "
    "policy policies protocol protocols datasheet datasheets contract contracts agreement agreements "
    "presentation "
    "presentations minutes dokument dokumente dokumenten dateien handbuch handbücher handbüchern bericht "
    "berichte "
    "richtlinie richtlinien vertrag verträge protokoll protokolle unterlagen anleitung anleitungen gutachten "
    # What is asked of them.
    "compare compared comparison difference differences different differs changes changed better versus "
    "contradict "
    "vergleiche vergleich unterschied unterschiede unterscheiden unterscheidet geändert verändert "
    "gegenüber besser "
    "summarise summarize summarised summary outline condense overview synopsis points findings takeaways "
    "zusammen zusammenfassung zusammenfassen kurzfassung wichtigsten punkte kernaussagen überblick "
    "wrote written author uploaded upload published publish release released created modified updated "
    "revised "
    "publication verfasst geschrieben erstellt veröffentlicht hochgeladen aktualisiert geändert autor "
    "verfasser "
    "which welche welcher welches where welcher "
    # How it is to be answered.
    "steps instructions procedure process proceed schritte vorgehen reihenfolge wording quote evidence proof "
    "passage source sources states clause seite steht belege nachweise wörtlich zitiere quelle "
    "everything anything experience experiences lessons background risks factors influence impact "
    "auswirkungen erfahrungen risiken hintergründe einfluss"
).split()
# One slip from a cue, and words of their own.
_ORDINARY = frozenset(
    """contrast contrasts stops quota quotes package vision missions charged chances crated processes
    compares pointe wrong white while whose there these those were wohne resource authors authority
    stehen stellt berichtet berichten gerichte verträgt vertrags vertrages vortrag vorträge seiten seine
    weite stets risk impacts kunde belegt berate guided reported reporter stated state statue status
    clauses manually releases contact contacts contracted protokolls protokollen verfassen erstellen
    erstelle erstellte stelle punkt punkten welchen welchem letter battery update updates create creates
    modify publisher publishes dokuments proceeds procedures passages police handbuchs quellen working
    filed filters firms miles tiles rules schritt related write writes cause causes gender influenced
    dataset datasets politics site sites skates stages outlined inference repeated composed documented
    risky films rises funding reversed stems revived seize synapses construct constructs contractors
    contractor sourced lesions quoted compiled resort evident influenza preservation factory compassion
    suite polished fires revealed experienced sieht weiche seide seile saite schnitte schriften qualle
    stent stehe vertrau verlag berichts punkts conceal staten massage message written wander founder
    pounds joints paints prints wrath wrap vote voted protocolled""".split()
)
_KNOWN = frozenset(_CUES) | _ORDINARY | STOP_WORDS["en"] | STOP_WORDS["de"]
# Misspelt so often, and too short for the rule.
_SHORT = {
    "teh": "the", "lst": "list", "lsit": "list", "shwo": "show", "hwo": "how",
    "wich": "which", "waht": "what",
    "whats": "what's", "wehn": "when", "wher": "where", "hwere": "where", "fase": "fasse", "wan": "wann",
    "wei": "wie", "stpes": "steps", "stet": "steht", "stehn": "stehen", "fiel": "file",
    "docuemnt": "document", "manaul": "manual", "kan": "kann", "diff": "difference", "writen": "written",
}  # fmt: skip
# German words for documents, as the ends of compounds: "Jahresberciht".
_COMPOUND_ENDS = (
    "handbuch bericht berichte richtlinie richtlinien vertrag verträge protokoll protokolle anleitung "
    "anweisung konzept "
    "vereinbarung gutachten merkblatt datenblatt lastenheft pflichtenheft broschüre präsentation satzung"
).split()
_OTHER_ENDS = ("vortrag", "vorträge", "handtuch", "ableitung", "konzert", "ertrag", "erträge", "presentation")
# Words of their own, but not in these places.
_BY_PLACE = (
    (re.compile(r"\bwen\b(?=\s+(?:is|are|was|were|did|does|do|has|have|will)\b)", re.IGNORECASE), "when"),
    (re.compile(r"(?<=\bwho )worte\b", re.IGNORECASE), "wrote"),
    (re.compile(r"\btel(?= (?:me|us)\b)", re.IGNORECASE), "tell"),
)


def mend(question: str) -> str:
    """The question with its misspelt cue words in lower case and right; everything else as it was."""
    for misspelt, right in _BY_PLACE:
        question = misspelt.sub(right, question)
    return _WORD.sub(lambda found: _mended(found.group()), question)


def _mended(word: str) -> str:
    lower = word.lower()
    return _SHORT.get(lower) or _nearest_cue(lower) or _with_right_end(word) or word


@lru_cache(maxsize=20_000)
def _with_right_end(word: str) -> str | None:
    """A long German word whose end is one slip from a kind of document, with that end; None for any other."""
    lower = word.lower()
    if len(word) < _SHORTEST_COMPOUND or lower.endswith((*_COMPOUND_ENDS, *_OTHER_ENDS)):
        return None
    for end in _COMPOUND_ENDS:
        for length in (len(end), len(end) - 1, len(end) + 1):
            tail = lower[-length:]
            if length < len(word) and tail[0] == end[0] and slips_between(tail, end) == 1:
                return word[:-length] + end
    return None


@lru_cache(maxsize=20_000)
def _nearest_cue(word: str) -> str | None:
    """The one cue that the word is a slip of; None for a word that is known, or like none or several."""
    if word in _KNOWN or len(word) < ONE_SLIP_FROM - 1 or _is_other_form(word):
        return None
    near = [(slips, cue) for cue in dict.fromkeys(_CUES) if (slips := _slips_to(word, cue)) is not None]
    fewest = min((slips for slips, _ in near), default=None)
    cues = [cue for slips, cue in near if slips == fewest]
    return cues[0] if cues else None


def _is_other_form(word: str) -> bool:
    """ "file" for "files", "quoted" for "quote": another form of a cue is no slip."""
    shorter = (word[:-1], word[:-2]) if word.endswith(("s", "d", "n", "e")) else ()
    return any(form in _KNOWN for form in (f"{word}s", *shorter))


def _slips_to(word: str, cue: str) -> int | None:
    """How many slips lie between them; None when there are more than the cue's length allows."""
    if len(cue) < ONE_SLIP_FROM or word[0] != cue[0]:  # hardly anybody misses the first letter
        return None
    allowed = 2 if len(cue) >= TWO_SLIPS_FROM else 1
    if abs(len(word) - len(cue)) > allowed:
        return None
    slips = slips_between(word, cue)
    return slips if slips <= allowed else None


def slips_between(one: str, other: str) -> int:
    """Letters left out, added, replaced, or two that changed places (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
