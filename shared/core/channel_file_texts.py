"""Why a file cannot be read, in the language of whoever dropped it. Pure.

Errors and the states of documents have their reasons in English, as the API tells them; chats tell them in
German as well. A reason that is not known here is told in English.
`tests/unit/core/test_channel_file_texts.py` looks through the sources for one that is missing.
"""

import re

from shared.models.channel import Language

_DAMAGED = "Die Datei ist beschädigt oder unvollständig."
_LOCKED = "Die Datei ist mit einem Kennwort geschützt. Legen Sie sie ohne Kennwort noch einmal ab."
_OTHER_KIND = "Ihr Inhalt passt nicht zu ihrer Endung."
_TOO_LARGE = "Die Datei ist zu groß. Teilen Sie sie auf."
_NOT_TAKEN = (
    "Dateien dieser Art werden nicht gelesen, wohl aber PDF, Word, PowerPoint, Excel, CSV, HTML, Markdown, "
    "Text, E-Mails (.eml), Untertitel und Bilder."
)
_GERMAN = (
    (r"Page (\d+) cannot be read\.", "Seite {0} lässt sich nicht lesen."),
    (r"Files (of type .*|without a suffix) cannot be read\.", _NOT_TAKEN),
    (r"The file is empty .*", "Die Datei ist leer."),
    (r"The suffix says .*", _OTHER_KIND),
    (r"The file is not text, although its suffix says so\.", _OTHER_KIND),
    (r"The content is not (a picture of a known kind\.|a mail: .*)", _OTHER_KIND),
    (
        r"The file needs a password, or is of a format of before 2007\.",
        f"{_LOCKED} Formate von vor 2007 gehen nicht.",
    ),
    (r"The (file|PDF) is encrypted.*", _LOCKED),
    (r"The PDF has no pages\.", "Das PDF hat keine Seiten."),
    (r"The (file|picture|PDF) is damaged.*", _DAMAGED),
    (r"The file's structure is not understood .*", _DAMAGED),
    (r"The file cannot be read by .*", _DAMAGED),
    (r"The file declares XML entities, .*", _DAMAGED),
    (r"The file crashed the parser: .*", _DAMAGED),
    (
        r"No cue of the transcript can be read; .* at line (\d+)\.",
        "In Zeile {0} steht keine Zeitangabe, die sich lesen lässt.",
    ),
    (r"The picture has more than (\d+) million pixels\.", "Das Bild hat mehr als {0} Millionen Bildpunkte."),
    (r"The file (is larger than|has|holds|unpacks to) .*", _TOO_LARGE),
    (r"Reading the file (takes more|took longer) than .*", _TOO_LARGE),
    (r"The file has no usable name\.", "Die Datei hat keinen brauchbaren Namen."),
    (r"A name that ends in .*", "Diese Endung gehört zu Zugriffslisten."),
    (r"The path of the file is too long\.", "Der Name der Datei ist zu lang."),
    (r"A document of somebody else has this name\.", "Ein Dokument von jemand anderem heißt schon so."),
    (
        r"Files are not taken from where this one is\.",
        "Von dort, wo sie liegt, werden keine Dateien angenommen. Legen Sie sie von Ihrem eigenen Gerät ab.",
    ),
    (r"The file is not where the channel says\.", "Sie liegt nicht mehr dort. Legen Sie sie noch einmal ab."),
    (
        r"The channel gives a page instead of the file\.",
        "Teams gibt mir statt der Datei eine Seite zum Anmelden. Legen Sie sie von einem Rechner aus ab.",
    ),
    (
        r"The channel does not give the file to us any more\.",
        "Sie ist nicht mehr zu haben. Legen Sie sie noch einmal ab.",
    ),
    (
        r"The (file|document) could not be ingested.*",
        "Beim Lesen ist etwas schiefgegangen. Versuchen Sie es später noch einmal.",
    ),
)


def file_reason(reason: str, language: Language) -> str:
    """The reason in words of the language; as it is, where there are none."""
    if language == "de":
        for english, german in _GERMAN:
            if found := re.fullmatch(english, reason, re.DOTALL):
                return german.format(*found.groups())
    return reason
