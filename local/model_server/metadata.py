"""DocumentMetadata by labels and counts: title, author, type, department, date, language, tags, summaries."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import PurePosixPath

from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import element_text
from local.model_server.protocol.requests import ChatRequest
from local.model_server.text.central import central_indices
from local.model_server.text.languages import STOP_WORDS, detect_language
from local.model_server.text.sentences import is_table_line, split_sentences
from local.model_server.text.words import content_words, stem, words_of

MAX_TITLE_LENGTH = 120
LINES_SEARCHED = 40
TOP_CHARACTERS = 4_000  # what stands further down is about something else
BRIEF_SENTENCES = 3
STANDARD_SENTENCES = 8
MAX_TAGS = 8
MIN_SENTENCE_WORDS = 5
_HEADING = re.compile(r"^#{1,2}\s+(.+)$", re.MULTILINE)
_AUTHOR = re.compile(
    r"^\W*(?:authors?|written by|prepared by|autor(?:in)?|verfasser(?:in)?)\s*:?\s+(.{2,60})$|"
    r"\b(?:author|prepared by|autor|verfasser)\s*:\s*([^\n|;,]{2,60})",
    re.IGNORECASE | re.MULTILINE,
)
_DEPARTMENT = re.compile(r"\b(?:department|abteilung)\s*:\s*([^\n|;.,]{2,40})", re.IGNORECASE)
# Order matters: the first that the title or the file's name holds, then the text.
_TYPES = {
    "price_list": "price list|price table|preisliste",
    "manual": "manual|handbook|handbuch|anleitung",
    "policy": "policy|richtlinie",
    "report": "report|bericht",
    "guide": "guide|leitfaden",
    "contract": "contract|agreement|vertrag",
    "minutes": "minutes|protokoll",
    "presentation": "slides|pptx",
    "spreadsheet": "xlsx|csv",
}
_MONTHS = {
    name: number
    for number, names in enumerate(
        "january januar,february februar,march märz,april,may mai,june juni,july juli,august,september,"
        "october oktober,november,december dezember".split(","),
        start=1,
    )
    for name in names.split()
}
_MONTH = "|".join(_MONTHS)
_DATES = (
    re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b"),
    re.compile(r"\b(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.\s?(?P<year>(?:19|20)\d\d)\b"),
    re.compile(rf"\b(?P<day>\d{{1,2}})\.?\s+(?P<name>{_MONTH})\s+(?P<year>(?:19|20)\d\d)\b", re.IGNORECASE),
    re.compile(rf"\b(?P<name>{_MONTH})\s+(?P<year>(?:19|20)\d\d)\b", re.IGNORECASE),
)
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")


def extract_metadata(request: ChatRequest, embedder: EmbeddingService) -> dict[str, JsonValue]:
    """Values of every field of the schema, from the beginning of the text and the file's name."""
    message = request.last_user_message.text
    filename = element_text(message, "filename") or ""
    text = element_text(message, "document") or ""
    top = text[:TOP_CHARACTERS]
    title = _find_title(text, filename)
    sentences = _summary_sentences(text)
    department = _DEPARTMENT.search(top)
    return {
        "title": title,
        "author": _find_author(top),
        "document_type": _find_type(title, filename, top),
        "department": department.group(1).strip(" *_#") if department else None,
        "date": _find_date(top, filename),
        "language": detect_language(text),
        "tags": list[JsonValue](find_tags(f"{title}\n{text}")),
        "summary_brief": _summarise(sentences, BRIEF_SENTENCES, embedder) or title,
        "summary_standard": _summarise(sentences, STANDARD_SENTENCES, embedder) or title,
    }


def find_tags(text: str) -> list[str]:
    """The words said most, the first form of each stem, lower case."""
    stop_words = STOP_WORDS.get(detect_language(text), frozenset())
    words = [word for word in words_of(text) if len(word) > 3 and word.isalpha() and word not in stop_words]
    content = set(content_words(text))
    counts = Counter(stem(word) for word in words if word in content)
    spoken = {stem(word): word for word in reversed(words)}
    return [spoken[term] for term, _ in counts.most_common(MAX_TAGS)]


def _find_title(text: str, filename: str) -> str:
    """The first heading, else the first line that looks like a title, else the file's name made readable."""
    lines = text.split("\n")[:LINES_SEARCHED]
    heading = _HEADING.search("\n".join(lines))
    candidates = (
        [heading.group(1)] if heading else [line for line in lines if _looks_like_title(line.strip())]
    )
    for line in candidates:
        return re.sub(r"[*_`]{1,3}", "", " ".join(line.split())).strip(" #")[:MAX_TITLE_LENGTH]
    return re.sub(r"[_-]+", " ", PurePosixPath(filename).stem).strip() or "Untitled"


def _looks_like_title(line: str) -> bool:
    has_letters = sum(letter.isalpha() for letter in line) > len(line) / 2
    is_short = len(words_of(line)) <= 14 and len(line) <= MAX_TITLE_LENGTH
    return has_letters and is_short and not line.endswith((".", ",", ";", ":")) and not is_table_line(line)


def _find_author(top: str) -> str | None:
    found = _AUTHOR.search(top)
    name = re.split(r"\s{2,}|[|;,]", found.group(1) or found.group(2))[0].strip(" .*_") if found else ""
    return name if name[:1].isupper() else None


def _find_type(title: str, filename: str, top: str) -> str:
    for place in (title, re.sub(r"[_.-]", " ", filename), top):
        for name, words in _TYPES.items():
            if re.search(rf"(?:{words})s?\b", place, re.IGNORECASE):
                return name
    return "document"


def _find_date(top: str, filename: str) -> str | None:
    """The first date near the top, else the year in the file's name."""
    for pattern in _DATES:
        for found in pattern.finditer(top):
            parts = found.groupdict()
            month = _MONTHS[parts["name"].lower()] if parts.get("name") else int(parts["month"])
            try:
                day = date(int(parts["year"]), month, int(parts.get("day") or 1)).isoformat()
            except ValueError:
                continue
            return day if parts.get("day") else day[:7]
    year = _YEAR.search(filename)
    return year.group() if year else None


def _summary_sentences(text: str) -> list[str]:
    prose = "\n".join(
        line for line in text.split("\n") if not line.startswith("#") and not is_table_line(line)
    )
    folded = dict.fromkeys(" ".join(sentence.split()) for sentence in split_sentences(prose))
    return [one for one in folded if len(one.split()) >= MIN_SENTENCE_WORDS and one.endswith((".", "!", "?"))]


def _summarise(sentences: Sequence[str], count: int, embedder: EmbeddingService) -> str:
    """Central sentences in their order. A short text keeps a third out."""
    wanted = min(count, max(2, len(sentences) * 2 // 3))
    return " ".join(sentences[index] for index in central_indices(sentences, wanted, embedder))
