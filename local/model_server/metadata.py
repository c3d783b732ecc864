"""Handler for DocumentMetadata. It derives title, author, type, department, date, language, tags and
summaries by rules.
"""

import re
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import PurePosixPath

from pydantic import JsonValue

from local.model_server.embedding.service import EmbeddingService
from local.model_server.prompt_reader import element_text
from local.model_server.protocol.requests import ChatRequest
from local.model_server.text.passages import is_table_line, split_sentences, spread
from local.model_server.text.words import content_words, detect_language, stem, words_of

MAX_TITLE_LENGTH = 120
LINES_SEARCHED = 40
# Only this many leading characters are searched for labels and dates, because later ones rarely describe the
# document.
TOP_CHARACTERS = 4_000
BRIEF_SENTENCES = 3
STANDARD_SENTENCES = 8
MAX_TAGS = 8
_HEADING = re.compile(r"^#{1,2}\s+(.+)$", re.MULTILINE)
_AUTHOR = (
    r"(?:\b(?:authors?|autor(?:in)?|verfasser(?:in)?)\s*:|^\W*(?:written|prepared) by:?)\s*([^\n|;,]{2,60})"
)
_DEPARTMENT = r"\b(?:department|abteilung)\s*:\s*([^\n|;.,]{2,40})"
_TYPE = re.compile(r"price list|manual|handbook|policy|report|guide|contract|minutes|bericht", re.IGNORECASE)
# Matches letterheads and document types, which are often printed larger than the title and must not be taken
# for it.
_KIND = re.compile(
    r"securities and exchange commission|\bform \d|cookies?\b|\A\W*(?:invoice|rechnung|contents|inhalt)\W*\Z",
    re.IGNORECASE,
)
_DATES = (
    (r"\b(?:19|20)\d\d-\d\d-\d\d\b", "%Y-%m-%d"),
    (r"\b\d{1,2}\.\d{1,2}\.(?:19|20)\d\d\b", "%d.%m.%Y"),
    (r"\b\d{1,2}\.? [A-Z][a-z]+ (?:19|20)\d\d\b", "%d %B %Y"),
)


def extract_metadata(request: ChatRequest, _: EmbeddingService) -> dict[str, JsonValue]:
    """Return a value for every field of DocumentMetadata, derived from the document text and the file
    name.
    """
    message = request.last_user_message.text
    filename = element_text(message, "filename") or ""
    text = element_text(message, "document") or ""
    top = text[:TOP_CHARACTERS]
    title = _find_title(text, filename)
    return {
        "title": title,
        "author": _find_label(_AUTHOR, top),
        "document_type": _find_type(title, filename, top),
        "department": _find_label(_DEPARTMENT, top),
        "date": _find_date(top, filename),
        "language": _find_language(text),
        "tags": list[JsonValue](find_tags(f"{title}\n{text}")),
        "summary_brief": _summarise(text, BRIEF_SENTENCES) or title,
        "summary_standard": _summarise(text, STANDARD_SENTENCES) or title,
    }


def _find_language(text: str) -> str:
    """Return the language code of the text outside tables, or "und" if there is none. Table cells are mostly
    names, which would distort the result.
    """
    prose = "\n".join(line for line in text.split("\n") if not is_table_line(line))
    return detect_language(prose) if words_of(prose) else "und"


def find_tags(text: str) -> list[str]:
    """Return at most eight tags: the most frequent words in lower case. Inflected forms count as one word,
    which is shown in the form that occurs first.
    """
    content = set(content_words(text))
    words = [word for word in words_of(text) if len(word) > 3 and word.isalpha() and word in content]
    spoken = {stem(word): word for word in reversed(words)}
    return [spoken[term] for term, _ in Counter(stem(word) for word in words).most_common(MAX_TAGS)]


def _find_label(pattern: str, top: str) -> str | None:
    match = re.search(pattern, top, re.IGNORECASE | re.MULTILINE)
    return match[1].strip(" .*_#") if match else None


def _find_title(text: str, filename: str) -> str:
    """Return the first heading or title-like line, or else the file name as words."""
    lines = text.split("\n")[:LINES_SEARCHED]
    heading = _HEADING.search("\n".join(lines))
    candidates = [heading[1]] if heading else [line for line in lines if _looks_like_title(line.strip())]
    if candidates and not _KIND.search(candidates[0]):
        return re.sub(r"[*_`]{1,3}", "", " ".join(candidates[0].split())).strip(" #")[:MAX_TITLE_LENGTH]
    return re.sub(r"[_-]+", " ", PurePosixPath(filename).stem).strip() or "Untitled"


def _looks_like_title(line: str) -> bool:
    has_letters = sum(letter.isalpha() for letter in line) > len(line) / 2
    is_short = len(words_of(line)) <= 14 and len(line) <= MAX_TITLE_LENGTH
    return has_letters and is_short and not line.endswith((".", ",", ";", ":")) and not is_table_line(line)


def _find_type(title: str, filename: str, top: str) -> str:
    """Return the first document type found in the title, the file name or the text, in this order, or else
    "document".
    """
    matches = (_TYPE.search(place) for place in (title, re.sub(r"[_.-]", " ", filename), top))
    return next((kind[0].lower().replace(" ", "_") for kind in matches if kind), "document")


def _find_date(top: str, filename: str) -> str | None:
    """Return the first date in the text as ISO 8601, or else the year in the file name, or None."""
    for pattern, form in _DATES:
        for groups in re.findall(pattern, top):
            with suppress(ValueError):
                text = groups.replace(". ", " ")
                return datetime.strptime(text, form).replace(tzinfo=UTC).date().isoformat()
    year = re.search(r"(?<!\d)(?:19|20)\d\d(?!\d)", filename)
    return year[0] if year else None


def _summarise(text: str, count: int) -> str:
    """Return at most `count` sentences sampled evenly from the text, in order. A short text is reduced to two
    thirds of its sentences.
    """
    lines = (line for line in text.split("\n") if not line.startswith("#") and not is_table_line(line))
    folded = dict.fromkeys(" ".join(sentence.split()) for sentence in split_sentences("\n".join(lines)))
    sentences = [one for one in folded if len(one.split()) > 4 and one.endswith((".", "!", "?"))]
    return " ".join(spread(sentences, min(count, max(2, len(sentences) * 2 // 3))))
