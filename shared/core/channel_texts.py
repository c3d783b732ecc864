"""Fixed texts of ours in chats, in German and English. Pure; nothing here quotes an error or a document."""

from collections.abc import Mapping

from shared.models.channel import Language

Texts = Mapping[Language, str]

HELP: Texts = {
    "en": (
        "Ask me anything that your documents may answer: I reply with the sources, down to the page.\n\n"
        "- **/new** begins a new conversation; I forget what we spoke of for what comes next\n"
        "- **/sources** shows the sources of the last answer\n"
        "- **/forget** deletes this conversation and what I remember of your questions\n"
        "- **/help** shows this\n\n"
        "{0}"
    ),
    "de": (
        "Fragen Sie mich, was Ihre Dokumente beantworten können: Ich antworte mit Quellen, bis zur Seite.\n\n"
        "- **/neu** beginnt ein neues Gespräch; was vorher war, spielt dann keine Rolle mehr\n"
        "- **/quellen** zeigt die Quellen der letzten Antwort\n"
        "- **/vergessen** löscht dieses Gespräch und was ich mir von Ihren Fragen gemerkt habe\n"
        "- **/hilfe** zeigt dies\n\n"
        "{0}"
    ),
}
OF_PERSON: Texts = {
    "en": "I read what you may read. Drop a file here, and it becomes a document of yours alone.",
    "de": "Ich lese, was Sie lesen dürfen. Legen Sie hier eine Datei ab, wird sie Ihr eigenes Dokument.",
}
OF_PERSON_ALONE: Texts = {
    "en": "Your groups cannot be looked up at the moment: I read only what is open to you by name, or to "
    "everybody.",
    "de": "Ihre Gruppen lassen sich gerade nicht ermitteln: Ich lese nur, was Ihnen selbst oder allen "
    "offensteht.",
}
OF_SEVERAL: Texts = {
    "en": "Several people read along here, so I use only documents that everybody may read.",
    "de": "Hier lesen mehrere mit, deshalb verwende ich nur Dokumente, die alle lesen dürfen.",
}
OF_STRANGER: Texts = {
    "en": "I do not know who you are here, so I use only documents that everybody may read.",
    "de": "Ich weiß hier nicht, wer Sie sind, deshalb verwende ich nur Dokumente, die alle lesen dürfen.",
}
NO_SUCH_COMMAND: Texts = {
    "en": "There is no such command: I have done nothing. A command stands alone in its message; /help tells "
    "which there are.",
    "de": "Diesen Befehl gibt es nicht: Ich habe nichts getan. Ein Befehl steht allein in seiner Nachricht; "
    "/hilfe zeigt, welche es gibt.",
}
NO_WORDS: Texts = {
    "en": "Please ask me in words. /help shows what I can do.",
    "de": "Bitte fragen Sie mich in Worten. /hilfe zeigt, was ich kann.",
}
BEGUN: Texts = {
    "en": "A new conversation begins. What would you like to know?",
    "de": "Ein neues Gespräch beginnt. Was möchten Sie wissen?",
}
FORGOTTEN: Texts = {
    "en": "Done: this conversation is deleted, and so is what I remembered of your questions. "
    "Your other conversations stay.",
    "de": "Erledigt: Dieses Gespräch ist gelöscht, ebenso, was ich mir von Ihren Fragen gemerkt hatte. "
    "Ihre anderen Gespräche bleiben.",
}
NO_SOURCES: Texts = {
    "en": "There is no answer with sources in this conversation yet.",
    "de": "In diesem Gespräch gibt es noch keine Antwort mit Quellen.",
}
SOURCES: Texts = {"en": "Sources of the last answer:", "de": "Quellen der letzten Antwort:"}
BEGINNING: Texts = {"en": "Reading your question …", "de": "Ich lese Ihre Frage …"}
GOING_ON: Texts = {
    "en": "This takes longer. I go on working and write here when it is done.",
    "de": "Das dauert länger. Ich arbeite weiter und schreibe hier, sobald ich fertig bin.",
}
NO_SUCH_OPTION: Texts = {
    "en": "There is no such option: please answer with a number from 1 to {0}.",
    "de": "Diese Möglichkeit gibt es nicht: Bitte antworten Sie mit einer Zahl von 1 bis {0}.",
}
ANSWERED_ALREADY: Texts = {
    "en": "That question is closed: it was answered, or you have asked something else since. "
    "Ask again if you like.",
    "de": "Diese Frage ist erledigt: Sie wurde beantwortet, oder Sie haben inzwischen etwas anderes gefragt. "
    "Fragen Sie gern noch einmal.",
}
REFUSED: Texts = {
    "en": "I may not answer you here: your account is not one of this organisation's, or not let in.",
    "de": "Ich darf Ihnen hier nicht antworten: Ihr Konto gehört nicht zu dieser Organisation oder ist nicht "
    "zugelassen.",
}
TOO_LONG: Texts = {
    "en": "That is too long for a question. Shorten it, or drop the material here as a file.",
    "de": "Das ist zu lang für eine Frage. Kürzen Sie, oder legen Sie den Stoff hier als Datei ab.",
}
TOO_MANY: Texts = {
    "en": "That was a lot at once. Please wait a moment, then ask again.",
    "de": "Das war viel auf einmal. Bitte warten Sie einen Moment und fragen Sie dann noch einmal.",
}
OUT_OF_REACH: Texts = {
    "en": "A service that I need cannot be reached right now. Please ask again in a few minutes.",
    "de": "Ein Dienst, den ich brauche, ist gerade nicht erreichbar. Bitte fragen Sie in ein paar Minuten "
    "noch einmal.",
}
BROKEN: Texts = {
    "en": "Something went wrong on my side, and I have no answer. Please ask again. "
    "If it happens again, give this reference to the operator: {0}",
    "de": "Bei mir ist etwas schiefgegangen, ich habe keine Antwort. Bitte fragen Sie noch einmal. "
    "Wenn es wieder geschieht, nennen Sie dem Betreiber diese Kennung: {0}",
}
CANCELLED: Texts = {"en": "The question was cancelled.", "de": "Die Frage wurde abgebrochen."}
GONE: Texts = {
    "en": "The conversation was deleted, so there is no answer to that question.",
    "de": "Das Gespräch wurde gelöscht, deshalb gibt es auf diese Frage keine Antwort.",
}
FILES_NOT_HERE: Texts = {
    "en": "I take files only in a personal chat in Teams, where they stay yours alone.",
    "de": "Dateien nehme ich nur im persönlichen Chat in Teams an, wo sie allein Ihnen gehören.",
}
TOO_MANY_FILES: Texts = {
    "en": "I took the first {0} files; please drop the others separately.",
    "de": "Ich habe die ersten {0} Dateien angenommen; bitte legen Sie die anderen einzeln ab.",
}
FILE_TAKEN: Texts = {"en": "I am reading **{0}** …", "de": "Ich lese **{0}** …"}
FILE_READY: Texts = {
    "en": "I have read **{0}**. You can ask about it now.",
    "de": "Ich habe **{0}** gelesen. Sie können jetzt danach fragen.",
}
FILE_FAILED: Texts = {"en": "I cannot read **{0}**: {1}", "de": "**{0}** kann ich nicht lesen: {1}"}
FILE_SLOW: Texts = {
    "en": "**{0}** takes longer to read; you can ask about it a little later.",
    "de": "**{0}** braucht länger; Sie können etwas später danach fragen.",
}

_OF_ERRORS: Mapping[str, Texts] = {
    "NetworkError": OUT_OF_REACH,
    "RateLimitError": OUT_OF_REACH,
    "TimeoutError": OUT_OF_REACH,
    "AuthenticationError": OUT_OF_REACH,
    "IndexNotFoundError": OUT_OF_REACH,
    "TooManyRequestsError": TOO_MANY,
    "TooManyRunsError": TOO_MANY,
    "PayloadTooLargeError": TOO_LONG,
    "NotAuthenticatedError": REFUSED,
    "AccessDeniedError": REFUSED,
    "RunCancelledError": CANCELLED,
    "NotFoundError": GONE,
}


def error_text(code: str | None, reference: str, language: Language) -> str:
    """What people are told of an error: what they can do, and a reference; nothing of its own words."""
    return _OF_ERRORS.get(code or "", BROKEN)[language].format(reference)
