"""Which language a text is in, by its stop words. Pure; a table and a count."""

import re
from collections import Counter

STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": """a about above after again against all also am an and any are as at be because been before
            being below between both but by can could did do does doing down during each few
            for from further had has have having he her here hers him his how i if in into
            is it its itself just me more most my no nor not now of off on once only or
            other our out over own same she should so some such than that the their them
            then there these they this those through to too under until up us very was we
            were what when where which while who whom why will with within without would you
            your s t don shall may might must upon per via whether""",
        "de": """ab aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bin
            bis bist da damit dann das dass dein deine dem den denn der des dessen dich die
            dies diese diesem diesen dieser dieses dir doch dort du durch ein eine einem
            einen einer eines er es etwas für gegen hat hatte habe haben hier hin ich ihm
            ihn ihnen ihr ihre ihrem ihren ihrer im in ins ist ja jede jedem jeden jeder
            jedes kann kein keine können könnte man mehr mein meine mit muss müssen nach
            nicht noch nun nur ob oder ohne sehr sein seine seinem seinen seiner sich sie
            sind so soll sollen sowie über um und uns unser unter vom von vor wann war waren
            warum was weil welche welchem welchen welcher welches wenn wer werden wie wieder
            wieviel will wir wird wo wurde wurden zu zum zur zwischen""",
        "fr": """à au aux avec c ce ces cette comme d dans de des du elle elles en est et être il ils je l la
            le les leur leurs lui mais ne nous on ont ou où par pas plus pour qu que qui sa
            sans se ses si son sont sur un une vous été""",
    }.items()
}
_LETTERS = re.compile(r"[^\W\d_]+")


def detect_language(text: str, default: str = "en") -> str:
    """ISO 639-1 code of the language whose stop words are most frequent; `default` when none occurs.

    A stop word of several languages ("in", "de") counts for each of them, so the others decide.
    """
    counts = Counter(_LETTERS.findall(text.lower()))
    scores = {
        language: sum(counts[word] for word in stop_words) for language, stop_words in STOP_WORDS.items()
    }
    best = max(scores, key=lambda language: (scores[language], language == default))
    return best if scores[best] else default
