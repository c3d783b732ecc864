"""Fixed texts of the bot in German and English. They never include error messages or document contents.
Pure.
"""

from collections.abc import Mapping, Sequence

from shared.evidence.untrusted_text import one_line
from shared.platform.errors import FileFailure
from shared.runs.events import RunEvent, SubagentStatus, TodoListStatus, ToolStartedEvent
from shared.runs.plan import TodoItem
from shared.teams.markdown import cut
from shared.teams.models import BotConversation, Language

Texts = Mapping[Language, str]

MAX_PROGRESS_CHARS = 200  # one or two lines on a phone; channels accept about 1,000 characters

PAGE: Texts = {"de": "S. {}", "en": "p. {}"}
FIGURE: Texts = {"de": "Abbildung", "en": "figure"}
OUTSIDE: Texts = {"de": "externe Quelle", "en": "external source"}
COMPUTED: Texts = {"de": "berechnet", "en": "computed"}
GENERATED: Texts = {"de": "Von KI erzeugt.", "en": "AI-generated."}
SOURCES_HEADING: Texts = {"de": "Quellen", "en": "Sources"}
DEEP_ANALYSIS: Texts = {"de": "Gründliche Analyse", "en": "Deep analysis"}
SHOW_ALL: Texts = {"de": "Alles anzeigen", "en": "Show all"}
OPEN_PAGE: Texts = {"de": "Seite öffnen", "en": "Open page"}

HELP: Texts = {
    "en": (
        "Ask me anything that your documents may answer. I reply with the sources, down to the page.\n\n"
        "- **/new** starts a new conversation; what we said before no longer counts\n"
        "- **/sources** shows the sources of the last answer\n"
        "- **/keep** makes a file that you dropped here a document of yours\n"
        "- **/forget** deletes this conversation and what I remember of your questions\n"
        "- **/help** shows this\n\n"
        "{0}"
    ),
    "de": (
        "Fragen Sie mich, was Ihre Dokumente beantworten können. Ich nenne dazu die Quellen mit Seite.\n\n"
        "- **/neu** beginnt ein neues Gespräch; was vorher war, spielt dann keine Rolle mehr\n"
        "- **/quellen** zeigt die Quellen der letzten Antwort\n"
        "- **/behalten** macht eine Datei, die Sie hier abgelegt haben, zu Ihrem Dokument\n"
        "- **/vergessen** löscht dieses Gespräch und was ich mir von Ihren Fragen gemerkt habe\n"
        "- **/hilfe** zeigt dies\n\n"
        "{0}"
    ),
}

AGENTS: Texts = {
    "en": "You can also ask an agent. Begin your message with its name and a colon:\n",
    "de": "Sie können auch einen Agenten fragen. Beginnen Sie mit seinem Namen und einem Doppelpunkt:\n",
}

OF_PERSON: Texts = {
    "en": "I read only what you may read. A file that you drop here belongs to this conversation, and only "
    "you can read it. After /new it no longer counts.",
    "de": "Ich lese nur, was Sie lesen dürfen. Eine Datei, die Sie hier ablegen, gehört zu diesem Gespräch, "
    "und nur Sie können sie lesen. Nach /neu zählt sie nicht mehr.",
}

OF_PERSON_ALONE: Texts = {
    "en": "Your groups cannot be looked up at the moment, so I read only what is shared with you by name, or "
    "with everyone.",
    "de": "Ihre Gruppen lassen sich gerade nicht ermitteln: Ich lese nur, was Ihnen selbst oder allen "
    "offensteht.",
}

OF_SEVERAL: Texts = {
    "en": "Several people read this conversation, so I use only documents that everyone can read.",
    "de": "Hier lesen mehrere mit, deshalb verwende ich nur Dokumente, die alle lesen dürfen.",
}
OF_STRANGER: Texts = {
    "en": "I don't know who you are here, so I use only documents that everyone can read.",
    "de": "Ich weiß hier nicht, wer Sie sind, deshalb verwende ich nur Dokumente, die alle lesen dürfen.",
}

NO_SUCH_COMMAND: Texts = {
    "en": "There is no such command, so I did nothing. A command must be the whole message; "
    "/help lists them.",
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
    "en": "This is taking longer. I'm still working on it and will write here when it's done.",
    "de": "Das dauert länger. Ich arbeite weiter und schreibe hier, sobald ich fertig bin.",
}
NO_SUCH_OPTION: Texts = {
    "en": "There is no such option: please answer with a number from 1 to {0}.",
    "de": "Diese Auswahl gibt es nicht: Bitte antworten Sie mit einer Zahl von 1 bis {0}.",
}

ANSWERED_ALREADY: Texts = {
    "en": "That question is closed: it was answered, or you have asked something else since. "
    "Ask again if you like.",
    "de": "Diese Frage ist erledigt: Sie wurde beantwortet, oder Sie haben inzwischen etwas anderes gefragt. "
    "Fragen Sie gern noch einmal.",
}

REFUSED: Texts = {
    "en": "I can't answer you here: your account does not belong to this organisation, or has no access.",
    "de": "Ich darf Ihnen hier nicht antworten: Ihr Konto gehört nicht zu dieser Organisation oder ist nicht "
    "zugelassen.",
}

TOO_LONG: Texts = {
    "en": "That is too long for a question. Shorten it, or drop the material here as a file.",
    "de": "Das ist zu lang für eine Frage. Kürzen Sie sie, oder legen Sie den Text hier als Datei ab.",
}
TOO_MANY: Texts = {
    "en": "That was a lot at once. Please wait a moment, then ask again.",
    "de": "Das war viel auf einmal. Bitte warten Sie einen Moment und fragen Sie dann noch einmal.",
}

NO_MORE_TODAY: Texts = {
    "en": "You have reached today's limit. You can continue tomorrow.",
    "de": "Sie haben das Limit für heute erreicht. Morgen geht es weiter.",
}

OUT_OF_REACH: Texts = {
    "en": "A service that I need cannot be reached right now. Please ask again in a few minutes.",
    "de": "Ein Dienst, den ich brauche, ist gerade nicht erreichbar. Bitte fragen Sie in ein paar Minuten "
    "noch einmal.",
}

BROKEN: Texts = {
    "en": "Something went wrong on my side, and I have no answer. Please ask again. "
    "If it happens again, give this reference to the operator: {0}",
    "de": "Bei mir ist etwas schiefgegangen, deshalb habe ich keine Antwort. Bitte fragen Sie noch einmal. "
    "Wenn es wieder passiert, nennen Sie dem Betreiber diese Kennung: {0}",
}

CANCELLED: Texts = {"en": "The question was cancelled.", "de": "Die Frage wurde abgebrochen."}
GONE: Texts = {
    "en": "The conversation was deleted, so there is no answer to that question.",
    "de": "Das Gespräch wurde gelöscht, deshalb gibt es auf diese Frage keine Antwort.",
}
FILES_NOT_HERE: Texts = {
    "en": "I take files only in a personal chat in Teams, where only you can read them.",
    "de": "Dateien nehme ich nur im persönlichen Chat in Teams an, wo nur Sie sie lesen können.",
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
    "DailyLimitError": NO_MORE_TODAY,
    "TooManyRunsError": TOO_MANY,
    "PayloadTooLargeError": TOO_LONG,
    "NotAuthenticatedError": REFUSED,
    "AccessDeniedError": REFUSED,
    "RunCancelledError": CANCELLED,
    "NotFoundError": GONE,
}

_SEARCHING: Texts = {"de": "Ich suche in den Dokumenten …", "en": "Searching the documents …"}
_WEB: Texts = {"de": "Ich suche im Web …", "en": "Searching the web …"}
_READING: Texts = {"de": "Ich lese genauer nach …", "en": "Reading more closely …"}
_STEP: Texts = {"de": "Schritt {0} von {1}: {2}", "en": "Step {0} of {1}: {2}"}
_TOOLS = {
    "rag_semantic_search": _SEARCHING,
    "rag_list_documents": _SEARCHING,
    "rag_metadata_search": _SEARCHING,
    "web_search": _WEB,
}

THREAD_FULL: Texts = {
    "en": "This conversation can't take more files now. Ask about the others first, or start another one "
    "with /new.",
    "de": "Dieses Gespräch nimmt gerade keine weiteren Dateien an. Fragen Sie erst nach den anderen, oder "
    "beginnen Sie mit /neu ein neues.",
}
NOTHING_TO_KEEP: Texts = {
    "en": "This conversation has no file that I could keep.",
    "de": "In diesem Gespräch gibt es keine Datei, die ich behalten könnte.",
}
KEEP_WHICH: Texts = {
    "en": "Which file? Write /keep and its name: {0}",
    "de": "Welche Datei? Schreiben Sie /behalten und den Namen: {0}",
}
KEPT: Texts = {
    "en": "**{0}** is now one of your documents. Only you can read it until you share it.",
    "de": "**{0}** ist jetzt eines Ihrer Dokumente. Nur Sie können es lesen, bis Sie es freigeben.",
}
KEPT_BEFORE: Texts = {
    "en": "One of your documents is already called **{0}**. To replace it, add the file on the web page.",
    "de": "Eines Ihrer Dokumente heißt schon **{0}**. Um es zu ersetzen, fügen Sie die Datei auf der "
    "Webseite hinzu.",
}
NAME_REFUSED: Texts = {
    "en": "The file name can't be used. Rename the file.",
    "de": "Der Dateiname lässt sich nicht verwenden. Benennen Sie die Datei um.",
}
PLACE_REFUSED: Texts = {
    "en": "Files from this location are not accepted. Drop it from your own device.",
    "de": "Von diesem Speicherort nehme ich keine Dateien an. Legen Sie sie von Ihrem eigenen Gerät ab.",
}
FILE_GONE: Texts = {
    "en": "It is no longer available. Drop it again.",
    "de": "Die Datei ist nicht mehr verfügbar. Legen Sie sie noch einmal ab.",
}
NO_FILE: Texts = {
    "en": "Teams returned a sign-in page instead of the file. Drop it from a computer.",
    "de": "Teams liefert statt der Datei eine Anmeldeseite. Legen Sie die Datei von einem Rechner aus ab.",
}

# English texts use the parser's own message, which names the page, line or limit.
_GERMAN_FAILURES: Mapping[FileFailure, str] = {
    "damaged": "Die Datei ist beschädigt oder unvollständig.",
    "empty": "Die Datei ist leer.",
    "encrypted": "Die Datei ist mit einem Kennwort geschützt. Legen Sie sie ohne Kennwort noch einmal ab.",
    "encrypted_or_old": "Die Datei ist mit einem Kennwort geschützt, oder ihr Format ist von vor 2007. "
    "Legen Sie sie ohne Kennwort im heutigen Format noch einmal ab.",
    "image_too_large": "Das Bild hat zu viele Bildpunkte. Verkleinern Sie es.",
    "internal": "Beim Lesen ist etwas schiefgegangen. Versuchen Sie es später noch einmal.",
    "needs_memory": "Die Datei braucht beim Lesen zu viel Speicher. Teilen Sie sie auf, oder speichern Sie "
    "sie als Text (.txt).",
    "no_cues": "Das Transkript hat keine lesbaren Zeitangaben. Exportieren Sie es als WebVTT oder SubRip.",
    "service_failed": "Ein Dienst, den ich zum Lesen brauche, ist ausgefallen. Versuchen Sie es später "
    "noch einmal.",
    "too_large": "Die Datei ist zu groß. Teilen Sie sie auf.",
    "unsupported": "Diesen Dateityp kann ich nicht lesen. Lesen kann ich PDF, Word, PowerPoint, Excel, CSV, "
    "HTML, Markdown, Text, E-Mails (.eml), Untertitel und Bilder.",
    "wrong_suffix": "Der Inhalt der Datei passt nicht zu ihrer Endung.",
}


def language_of(conversation: BotConversation) -> Language:
    """Return the language for fixed texts, taken from the user's locale if the channel reports one."""
    return "de" if (conversation.locale or "").casefold().split("-")[0] == "de" else "en"


def error_text(code: str | None, reference: str, language: Language) -> str:
    """Return the text that tells the user what to do about an error, with a reference. The original error
    message is never included.
    """
    return _OF_ERRORS.get(code or "", BROKEN)[language].format(reference)


def progress_line(event: RunEvent, language: Language) -> str | None:
    """Return the progress line that an event produces, or None if the current line remains."""
    if isinstance(event, ToolStartedEvent):
        texts = _TOOLS.get(event.tool)
        return texts[language] if texts else None
    if isinstance(event, SubagentStatus) and event.phase == "started":
        return _READING[language]
    return _of_plan(event.todo, language) if isinstance(event, TodoListStatus) else None


def _of_plan(todo: Sequence[TodoItem], language: Language) -> str | None:
    """Return the progress line for the first unfinished item of a plan, or None if all are done."""
    for number, item in enumerate(todo, start=1):
        if item.status in ("pending", "in_progress"):
            # Model text stays unescaped, because only some clients render Markdown here. It is put on one
            # line, and links are broken.
            words = one_line(item.description).replace("](", "] (")
            return cut(_STEP[language].format(number, len(todo), words), MAX_PROGRESS_CHARS)
    return None


def file_reason(failure: FileFailure | None, reason: str, language: Language) -> str:
    """Return the reason why a file can't be read, in the user's language. `reason` is the parser's English
    message.
    """
    return _GERMAN_FAILURES[failure or "internal"] if language == "de" else reason
