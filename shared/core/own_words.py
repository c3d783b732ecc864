"""What we say in an answer ourselves, in the language of the question: English, or German. Pure."""

import re
from dataclasses import dataclass

_WORD = re.compile(r"[^\W\d_]+")
_GERMAN_WORDS = frozenset(
    """der die das den dem des ein eine einen einem einer eines und oder nicht ist sind war waren wird werden
    wie was wer wo wann warum welche welcher welches welchen wieviel viele viel im am vom zum zur bei mit für
    auf aus nach über unter zwischen gibt es ich wir sie mir uns bitte kann darf muss soll hat
    haben""".split()
)
_ENGLISH_WORDS = frozenset(
    """the a an and or not is are was were will be how what who where when why which much many in on at of to
    from with for by about between there it i we you they me us please can may must should has have do does
    did""".split()
)


@dataclass(frozen=True)
class OwnWords:
    """Our sentences in one language; `{}` is filled in."""

    unsupported: str
    no_answer: str
    no_rest: str
    asked: str
    next_step: str
    cut: str
    differ: str
    nothing_found: str
    nothing_found_step: str


ENGLISH = OwnWords(
    unsupported=" *(not proved by the documents)*",
    no_answer="The documents do not answer this. Missing: {}.",
    no_rest="The documents do not answer the rest. Missing: {}.",
    asked="what the question asks for",
    next_step="Next step: {}",
    cut="*(The answer was cut off at its length limit.)*",
    differ="The documents differ:",
    nothing_found="no document that you may read speaks of this",
    nothing_found_step="Name the document, use other words, or ask whoever owns the documents for access.",
)
GERMAN = OwnWords(
    unsupported=" *(durch die Dokumente nicht belegt)*",
    no_answer="Die Dokumente beantworten das nicht. Es fehlt: {}.",
    no_rest="Den Rest beantworten die Dokumente nicht. Es fehlt: {}.",
    asked="wonach gefragt ist",
    next_step="Nächster Schritt: {}",
    cut="*(Die Antwort wurde an ihrer Längengrenze abgeschnitten.)*",
    differ="Die Dokumente unterscheiden sich:",
    nothing_found="kein Dokument, das Sie lesen dürfen, spricht davon",
    nothing_found_step="Dokument nennen, andere Wörter wählen, oder beim Besitzer um Zugang bitten.",
)


def own_words(question: str) -> OwnWords:
    """Our sentences in the question's language; English where it is neither clearly."""
    words = [word.lower() for word in _WORD.findall(question)]
    german = sum(word in _GERMAN_WORDS for word in words)
    return GERMAN if german > sum(word in _ENGLISH_WORDS for word in words) else ENGLISH
