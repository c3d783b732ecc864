"""What a run is doing, in one short line for people who wait in a chat: the steps of its plan. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.core.channel_text import visible
from shared.models.channel import Language
from shared.models.events import RunEvent

MAX_CHARS = 200  # a line on a telephone or two; channels take about 1,000

_SEARCHING = {"de": "Ich suche in den Dokumenten …", "en": "Searching the documents …"}
_WEB = {"de": "Ich suche im Netz …", "en": "Searching the web …"}
_READING = {"de": "Ich lese genauer nach …", "en": "Reading more closely …"}
_STEP = {"de": "Schritt {0} von {1}: {2}", "en": "Step {0} of {1}: {2}"}
_TOOLS = {
    "rag_semantic_search": _SEARCHING,
    "rag_list_documents": _SEARCHING,
    "rag_metadata_search": _SEARCHING,
    "web_search": _WEB,
}


def progress_line(event: RunEvent, language: Language) -> str | None:
    """What is being done from this event on; None when it changes nothing that people see."""
    data = event.data
    if event.name == "TOOL_STARTED":
        said = _TOOLS.get(str(data.get("tool")))
        return said[language] if said else None
    if event.name != "STATUS":
        return None
    if data.get("state") == "sub_agent" and data.get("phase") == "started":
        return _READING[language]
    todo = data.get("todo")
    return _of_plan(todo, language) if isinstance(todo, list) else None


def _of_plan(todo: Sequence[Mapping[str, Any]], language: Language) -> str | None:
    """The first step that is not done."""
    for number, item in enumerate(todo, start=1):
        if item.get("status") in ("pending", "in_progress"):
            line = _STEP[language].format(number, len(todo), _unlinked(str(item["description"])))
            return line if len(line) <= MAX_CHARS else f"{line[: MAX_CHARS - 1]}…"
    return None


def _unlinked(words: str) -> str:
    """A model's words on one line. Some clients read Markdown there, others show it: nothing is escaped."""
    return " ".join(visible(words).split()).replace("](", "] (").replace("://", ": //")
