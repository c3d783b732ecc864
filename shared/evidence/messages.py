"""Fixed sentences in English and German, for answers written without a model and for notes on answers. Pure.

In any other language, signs replace the remarks, and text without a model is in English.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Messages:
    """The fixed sentences in one language. `{}` is the placeholder for a value."""

    unsupported: str
    unproved: str
    unsourced: str
    withheld: str
    withdrawn: str
    no_answer: str
    gap_not_searched: str
    asked: str
    next_step: str
    cut: str
    nothing_found: str
    none_with: str
    no_such_document: str
    nearest_names: str
    unreadable: str
    pages: str
    unreadable_step: str
    nothing_found_step: str
    note: str
    planned_by_rule: str
    words_alone: str
    searches_late: str
    left_out: str
    file_unread: str
    file_failed: str
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

    def abstention(self, missing: str, next_step: str) -> str:
        """Return the text of an answer that abstains, for use if the model wrote none. An empty `next_step`
        is left out.
        """
        text = self.no_answer.format(missing)
        return f"{text}\n\n{self.next_step.format(next_step)}" if next_step else text

    @property
    def without_search(self) -> "Messages":
        """Return a copy whose sentences don't mention the documents, for answers that didn't search them."""
        step = self.not_searched_step
        return replace(self, no_answer="{}.", nothing_found=self.not_searched, nothing_found_step=step)


ENGLISH = Messages(
    unsupported=" *(without proof from the documents)*",
    unproved="*(Not verified, because the quotation was not found word for word: {})*",
    unsourced="*(Calculated, or not found in the cited documents: {})*",
    withheld="*(A sentence was left out because the calculation does not give its numbers.)*",
    withdrawn="You no longer have access to the tables that this answer was calculated from.",
    no_answer="The documents don't answer this. What's missing: {}.",
    gap_not_searched="The search for this failed, so it may still be in the documents.",
    asked="what the question asks for",
    next_step="Next step: {}",
    cut="The answer was cut off because it was too long.",
    nothing_found="a document on this that you can read",
    none_with="a document that you can read with {}",
    no_such_document="a document named “{}” that you can read",
    nearest_names="Similar names: {}.",
    unreadable=(
        "readable text in “{}”{}: the file exists, but it is empty, or its pages are scanned pictures that "
        "no text recognition has read"
    ),
    pages=" (pages: {})",
    unreadable_step="Upload a version with text, or ask for text recognition to be set up.",
    nothing_found_step="Name the document, use other words, or ask its owner for access.",
    note="*(Note: {})*",
    planned_by_rule="The documents were searched for your exact question.",
    words_alone="Only a keyword search was possible, so some passages may be missing.",
    searches_late="Some searches took too long, so something may be missing.",
    left_out="{} of {} matching documents were not read: {}.",
    file_unread="“{}” was not used, because it is still being read.",
    file_failed="“{}” was not used, because it couldn't be read.",
    groups_unknown="You didn't reply in time, so only documents shared with you or everyone were searched.",
    search_unfinished="The search took too long.",
    not_searched="The search took too long to tell whether the documents answer this",
    not_searched_step="Ask again in a moment.",
    late="The answer is incomplete because time ran out.",
    broken="The answer is incomplete because the model stopped responding.",
    not_written="No answer could be written because the model failed.",
    not_written_in_time="No answer could be written in time.",
    passages="These passages of the documents fit the question best:",
    documents="These documents fit the question best:",
)
GERMAN = Messages(
    unsupported=" *(ohne Beleg aus den Dokumenten)*",
    unproved="*(Nicht bestätigt, weil das Zitat nicht wörtlich gefunden wurde: {})*",
    unsourced="*(Berechnet oder in den zitierten Dokumenten nicht gefunden: {})*",
    withheld="*(Ein Satz wurde weggelassen, weil die Berechnung seine Zahlen nicht ergibt.)*",
    withdrawn="Sie haben keinen Zugriff mehr auf die Tabellen, aus denen diese Antwort berechnet wurde.",
    no_answer="Die Dokumente beantworten das nicht. Es fehlt: {}.",
    gap_not_searched="Die Suche danach ist fehlgeschlagen; vielleicht steht es doch in den Dokumenten.",
    asked="wonach gefragt ist",
    next_step="Nächster Schritt: {}",
    cut="Die Antwort wurde gekürzt, weil sie zu lang war.",
    nothing_found="ein Dokument dazu, auf das Sie Zugriff haben",
    none_with="ein Dokument, auf das Sie Zugriff haben, mit {}",
    no_such_document="ein Dokument namens „{}“, auf das Sie Zugriff haben",
    nearest_names="Ähnliche Namen: {}.",
    unreadable=(
        "lesbarer Text in „{}“{}: Die Datei ist da, aber leer, oder ihre Seiten sind gescannte Bilder, "
        "die keine Texterkennung gelesen hat"
    ),
    pages=" (Seiten: {})",
    unreadable_step="Laden Sie eine Fassung mit Text hoch, oder lassen Sie die Texterkennung einrichten.",
    nothing_found_step="Nennen Sie das Dokument, formulieren Sie anders oder bitten Sie um Zugriff.",
    note="*(Hinweis: {})*",
    planned_by_rule="Die Dokumente wurden nach dem Wortlaut Ihrer Frage durchsucht.",
    words_alone="Nur eine Stichwortsuche war möglich; manche Stellen können fehlen.",
    searches_late="Einige Suchen haben zu lange gedauert; es kann etwas fehlen.",
    left_out="{} von {} passenden Dokumenten wurden nicht gelesen: {}.",
    file_unread="„{}“ wurde nicht verwendet, weil die Datei noch gelesen wird.",
    file_failed="„{}“ wurde nicht verwendet, weil die Datei nicht gelesen werden konnte.",
    groups_unknown="Ohne rechtzeitige Antwort wurden nur für Sie oder alle freigegebene Dokumente gelesen.",
    search_unfinished="Die Suche hat zu lange gedauert.",
    not_searched="Die Suche hat zu lange gedauert; ob die Dokumente das beantworten, ist nicht bekannt",
    not_searched_step="Fragen Sie gleich noch einmal.",
    late="Die Antwort ist unvollständig, weil die Zeit abgelaufen ist.",
    broken="Die Antwort ist unvollständig, weil das Modell nicht mehr geantwortet hat.",
    not_written="Es konnte keine Antwort geschrieben werden, weil das Modell ausgefallen ist.",
    not_written_in_time="Die Zeit hat für eine Antwort nicht gereicht.",
    passages="Diese Stellen der Dokumente passen am besten zur Frage:",
    documents="Diese Dokumente passen am besten zur Frage:",
)


OTHER_LANGUAGE = replace(
    ENGLISH,
    unsupported=" *(?)*",
    unproved="*(?: {})*",
    unsourced="*(?: {})*",
    withheld="*(…)*",
    note="*(…)*",
)
_WITH_SENTENCES = {"": ENGLISH, "und": ENGLISH, "en": ENGLISH, "de": GERMAN}


def is_german(language: str) -> bool:
    """Return whether a language code such as `de` or `de-AT` stands for German."""
    return language.lower().split("-")[0] == "de"


def messages_in(language: str) -> Messages:
    """Return the fixed sentences for a language code: German for `de`, English for `en` or an unknown
    language. For other languages, remarks in the answer are replaced by signs.
    """
    return _WITH_SENTENCES.get(language.lower().split("-")[0], OTHER_LANGUAGE)
