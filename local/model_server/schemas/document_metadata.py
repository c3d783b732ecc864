"""DocumentMetadata: title, author, type, department, date, language, tags, summaries, by rules."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from pydantic import JsonValue

from local.model_server.prompt_reader import element_text
from local.model_server.schemas.dates import find_date
from local.model_server.schemas.document_types import department_of, document_type_of
from local.model_server.schemas.task import SchemaTask
from local.model_server.text.central import central_indices, is_byline
from local.model_server.text.languages import STOP_WORDS, detect_language
from local.model_server.text.sentences import is_table_line, split_sentences
from local.model_server.text.words import content_words, stem, words_of

MAX_TITLE_LENGTH = 120
LINES_SEARCHED = 40
BRIEF_SENTENCES = 3
STANDARD_SENTENCES = 8
MAX_TAGS = 8
MIN_SENTENCE_WORDS = 5
_HEADING = re.compile(r"^#{1,2}\s+(.+)$", re.MULTILINE)
_AUTHOR = re.compile(
    r"^\W*(?:authors?|written by|prepared by|issued by|published by|by|"
    r"autor(?:in|es)?|verfasser(?:in)?|verfasst von|erstellt von|herausgeber|auteur|autore)"
    r"\s*[:：]?\s+(.{2,80})$",
    re.IGNORECASE | re.MULTILINE,
)
# "Date: 12 March 2024": says nothing of the topic.
_LABELLED_LINE = re.compile(r"^\W*[\w ]{2,24}:[^\n]{0,60}$", re.MULTILINE)
_AUTHOR_COLON = re.compile(r"\b(?:author|prepared by|autor|verfasser)\s*:\s*([^\n|;,]{2,60})", re.IGNORECASE)


def extract_metadata(task: SchemaTask) -> dict[str, JsonValue]:
    """Values of every field of the schema, from the beginning of the text and the file's name."""
    filename = element_text(task.message, "filename") or ""
    text = element_text(task.message, "document") or ""
    language = detect_language(text)
    title = find_title(text, filename)
    sentences = _summary_sentences(text, title)
    return {
        "title": title,
        "author": find_author(text),
        "document_type": document_type_of(filename, title, text),
        "department": department_of(text),
        "date": find_date(text, filename),
        "language": language,
        "tags": list(find_tags(f"{title}\n{_LABELLED_LINE.sub('', text)}", language)),
        "summary_brief": _summarise(sentences, BRIEF_SENTENCES, task) or title,
        "summary_standard": _summarise(sentences, STANDARD_SENTENCES, task) or title,
    }


def find_title(text: str, filename: str) -> str:
    """The first heading, else the first line that looks like a title, else the file's name made readable."""
    if heading := _HEADING.search("\n".join(text.split("\n")[:LINES_SEARCHED])):
        return _clean(heading.group(1))
    for line in text.split("\n")[:LINES_SEARCHED]:
        if _looks_like_title(line.strip()):
            return _clean(line)
    stem_of_name = PurePosixPath(filename).stem
    return re.sub(r"[_-]+", " ", stem_of_name).strip() or "Untitled"


def _clean(line: str) -> str:
    return re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", "", " ".join(line.split())).strip(" #")[
        :MAX_TITLE_LENGTH
    ]


def _looks_like_title(line: str) -> bool:
    words = words_of(line)
    if not 1 <= len(words) <= 14 or len(line) > MAX_TITLE_LENGTH or is_table_line(line):
        return False
    has_letters = sum(letter.isalpha() for letter in line) > len(line) / 2
    return has_letters and not line.endswith((".", ",", ";", ":")) and not _AUTHOR.match(line)


def find_author(text: str) -> str | None:
    """What follows "Author:", "Prepared by", "By" at the beginning of a line near the top."""
    top = "\n".join(text.split("\n")[:LINES_SEARCHED])
    found = _AUTHOR.search(top) or _AUTHOR_COLON.search(top)
    if not found:
        return None
    name = re.split(r"\s{2,}|[|;]|, (?=\d)", found.group(1))[0].strip(" .*_,")
    return name if name and name[0].isupper() and len(name.split()) <= 8 else None


def find_tags(text: str, language: str) -> list[str]:
    """The words said most, the longest form of each stem, lower case; at least three where there are."""
    stop_words = STOP_WORDS.get(language, frozenset())
    words = [word for word in words_of(text) if len(word) > 3 and word.isalpha() and word not in stop_words]
    counts = Counter(stem(word) for word in words if word in set(content_words(word)))
    spoken = {stem(word): word for word in reversed(words)}
    ranked = sorted(counts, key=lambda term: (-counts[term], words.index(spoken[term])))
    return [spoken[term] for term in ranked[:MAX_TAGS]]


def _summary_sentences(text: str, title: str) -> list[str]:
    prose = "\n".join(
        line for line in text.split("\n") if not line.startswith("#") and not is_table_line(line)
    )
    folded = (" ".join(sentence.split()) for sentence in split_sentences(prose))
    return [
        sentence
        for sentence in dict.fromkeys(folded)
        if len(sentence.split()) >= MIN_SENTENCE_WORDS
        and sentence != title
        and sentence.endswith((".", "!", "?"))
        and not is_byline(sentence)
    ]


def _summarise(sentences: Sequence[str], count: int, task: SchemaTask) -> str:
    """Central sentences in their order. A short text keeps a third out."""
    wanted = min(count, max(2, len(sentences) * 2 // 3))
    return " ".join(sentences[index] for index in central_indices(sentences, wanted, task.embedder))
