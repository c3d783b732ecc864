"""What the model says when there is nothing to answer from: what it is. Pure."""

import re

from local.model_server.text.languages import detect_language

CHAT_MODEL = "groundwork-extractive"

_ENGLISH = (
    f"I am {CHAT_MODEL}, the local stand-in for a language model: I quote sentences from documents that a "
    "prompt holds, by rules and word statistics, and I write nothing of my own. This message holds no "
    "documents, so there is nothing that I could answer from. Configure a real model for open conversation."
)
_GERMAN = (
    f"Ich bin {CHAT_MODEL}, der lokale Ersatz für ein Sprachmodell: Ich zitiere Sätze aus den Dokumenten "
    "einer Anfrage, nach Regeln und Wortstatistik, und schreibe nichts Eigenes. Diese Nachricht enthält "
    "keine Dokumente, also nichts, woraus ich antworten könnte. Für freie Gespräche bitte ein echtes Modell "
    "einstellen."
)


_SMALL_TALK = re.compile(
    r"(?:(?P<en>hi|hello|hey|good (?:morning|evening)|thanks|thank you|what can you do|who are you)"
    r"|hallo|guten (?:morgen|tag|abend)|danke|vielen dank|was kannst du|wer bist du)[\s!.?,]*",
    re.IGNORECASE,
)
_HELLO = {
    True: "Hello! I answer questions from your organisation's documents and show where it all stands.",
    False: "Hallo! Ich beantworte Fragen aus den Dokumenten Ihrer Organisation und zeige, wo alles steht.",
}


def reply_to_small_talk(message: str) -> str:
    """A short reply to a greeting, thanks, or a question about the assistant; empty for all else."""
    found = _SMALL_TALK.fullmatch(message.strip())
    return _HELLO[found["en"] is not None] if found else ""


def introduce_yourself(message: str) -> str:
    """A short honest reply, in the message's language."""
    return _GERMAN if detect_language(message) == "de" else _ENGLISH
