"""The fixed sentences of an answer, in the language of the question: English or German. Pure."""

import re
from dataclasses import dataclass, replace

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
class Messages:
    """The sentences in one language; `{}` is filled in."""

    unsupported: str
    no_answer: str
    no_rest: str
    asked: str
    next_step: str
    cut: str
    differ: str
    nothing_found: str
    nothing_found_step: str
    also: str
    note: str
    planned_by_rule: str
    words_alone: str
    searches_late: str
    groups_unknown: str
    search_unfinished: str
    not_searched: str
    not_searched_step: str
    late: str
    broken: str
    not_written: str
    not_written_in_time: str
    passages: str
    documents: str

    @property
    def without_search(self) -> "Messages":
        """The sentences for an answer without any search: they claim nothing about the documents."""
        step = self.not_searched_step
        return replace(self, no_answer="{}.", nothing_found=self.not_searched, nothing_found_step=step)


ENGLISH = Messages(
    unsupported=" *(not proved by the documents)*",
    no_answer="The documents do not answer this. Missing: {}.",
    no_rest="The documents do not answer the rest. Missing: {}.",
    asked="what the question asks for",
    next_step="Next step: {}",
    cut="The answer was cut off at its length limit.",
    differ="The documents differ:",
    nothing_found="no document that you may read speaks of this",
    nothing_found_step="Name the document, use other words, or ask whoever owns the documents for access.",
    also="Also stated, in a document that the question is about:",
    note="*(Note: {})*",
    planned_by_rule="The question could not be analysed, so it was searched for as you asked it.",
    words_alone="The search by meaning failed, so passages were found by their words alone.",
    searches_late="Some searches did not end in time, so something may be missing.",
    groups_unknown="You did not reply in time, so only documents open to you or to everyone were searched.",
    search_unfinished="The search did not end in the time for this question.",
    not_searched="Whether the documents answer this is not known: the search did not end in time",
    not_searched_step="Ask again in a moment.",
    late="The answer is incomplete, because the time for it was over.",
    broken="The answer is incomplete, because the model stopped answering.",
    not_written="No answer could be written, because the model failed.",
    not_written_in_time="No answer could be written in the time for it.",
    passages="These passages of the documents fit the question best:",
    documents="These documents fit the question best:",
)
GERMAN = Messages(
    unsupported=" *(durch die Dokumente nicht belegt)*",
    no_answer="Die Dokumente beantworten das nicht. Es fehlt: {}.",
    no_rest="Den Rest beantworten die Dokumente nicht. Es fehlt: {}.",
    asked="wonach gefragt ist",
    next_step="Nächster Schritt: {}",
    cut="Die Antwort wurde an ihrer Längengrenze abgeschnitten.",
    differ="Die Dokumente unterscheiden sich:",
    nothing_found="kein Dokument, das Sie lesen dürfen, spricht davon",
    nothing_found_step="Dokument nennen, andere Wörter wählen, oder beim Besitzer um Zugang bitten.",
    also="Außerdem steht in einem Dokument, nach dem gefragt ist:",
    note="*(Hinweis: {})*",
    planned_by_rule="Gesucht wurde nach der Frage, wie sie gestellt ist; untersucht werden konnte sie nicht.",
    words_alone="Die Suche nach der Bedeutung fiel aus; gefunden wurden Stellen nur nach ihren Wörtern.",
    searches_late="Nicht jede Suche wurde rechtzeitig fertig, so dass etwas fehlen kann.",
    groups_unknown="Lange kam keine Antwort; gesucht wurde in dem, was Ihnen selbst oder allen offensteht.",
    search_unfinished="Die Suche wurde in der Zeit für diese Frage nicht fertig.",
    not_searched="Ob die Dokumente das beantworten, ist nicht bekannt: die Suche endete nicht rechtzeitig",
    not_searched_step="In einem Augenblick noch einmal fragen.",
    late="Die Antwort ist unvollständig, weil die Zeit dafür um war.",
    broken="Die Antwort ist unvollständig, weil das Modell nicht weiter antwortete.",
    not_written="Eine Antwort konnte nicht geschrieben werden, weil das Modell ausfiel.",
    not_written_in_time="Eine Antwort konnte in der Zeit dafür nicht geschrieben werden.",
    passages="Diese Stellen der Dokumente passen am besten zur Frage:",
    documents="Diese Dokumente passen am besten zur Frage:",
)


def messages_for(question: str) -> Messages:
    """The sentences in the question's language; English unless it is clearly German."""
    words = [word.lower() for word in _WORD.findall(question)]
    german = sum(word in _GERMAN_WORDS for word in words)
    return GERMAN if german > sum(word in _ENGLISH_WORDS for word in words) else ENGLISH
