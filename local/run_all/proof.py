"""Verifies answers against the samples: quotations, expectations and leaks."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypdfium2

from local.run_all.api_client import Reply
from samples.acl import ACCESS, SampleUser, readable_by
from samples.questions import GIVEAWAYS, Expected

_NOT_A_LETTER = re.compile(r"[\W_]+")
# Matches fragments of prompts, which must never appear in an answer.
_MARKUP = re.compile(r"(?:<|&lt;)/?(?:block|document|documents|cite|gap|output_rules)\b")


@dataclass(frozen=True)
class Finding:
    """A fault found in an answer."""

    text: str


class SampleTexts:
    """The text of the samples, extracted independently of the app."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pages: dict[str, list[str]] = {}

    def says(self, filename: str, page_number: int | None, quote: str) -> bool:
        """Return whether the page contains every line of the quotation. Only letters and digits are compared.
        Without a page number, any page counts.
        """
        pages = self._texts(filename)
        if page_number is not None and filename.endswith(".pdf"):
            pages = pages[page_number - 1 : page_number]
        parts = [part for line in re.split("\n| … ", quote) if (part := letters(line))]
        return bool(parts) and any(all(part in page for part in parts) for page in pages)

    def _texts(self, filename: str) -> list[str]:
        if filename not in self._pages:
            path = self._folder / filename
            texts = _pdf_pages(path) if path.suffix == ".pdf" else [path.read_text(encoding="utf-8")]
            self._pages[filename] = [letters(text) for text in texts]
        return self._pages[filename]


def letters(text: str) -> str:
    """Return only the letters and digits of a text, case-folded."""
    return _NOT_A_LETTER.sub("", text).casefold()


def check_reply(reply: Reply, user: SampleUser, expected: Expected, texts: SampleTexts) -> list[Finding]:
    """Return all faults of a reply: errors, unproved quotations, leaks, prompt markup and missed
    expectations.
    """
    if reply.error is not None:
        return [Finding(f"ended in an error: {reply.error.get('message')}")]
    if not reply.answer:
        return [Finding("never completed")]
    return [
        *_check_citations(reply.citations, texts),
        *_leaks(reply, user),
        *_markup(reply),
        *_misses(reply, expected),
    ]


def _check_citations(citations: list[dict[str, Any]], texts: SampleTexts) -> list[Finding]:
    findings = []
    for citation in citations:
        place = f"{citation['filename']}, page {citation.get('page_number')}"
        if not citation["verified"]:
            findings.append(Finding(f"citation {citation['n']} of {place} is not verified"))
        elif not texts.says(citation["filename"], citation.get("page_number"), citation["quote"]):
            findings.append(Finding(f"citation {citation['n']} does not occur in {place}"))
    return findings


def _leaks(reply: Reply, user: SampleUser) -> list[Finding]:
    seen = reply.everything_seen
    findings = []
    for filename in sorted(set(ACCESS) - readable_by(user)):
        words = (filename, *GIVEAWAYS.get(filename, ()))
        findings += [Finding(f"{user.user_id} saw {word!r} of {filename}") for word in words if word in seen]
    return findings


def _markup(reply: Reply) -> list[Finding]:
    match = _MARKUP.search(reply.text)
    return [Finding(f"shows prompt markup: {match[0]!r}")] if match else []


def _misses(reply: Reply, expected: Expected) -> list[Finding]:
    if expected.abstains is not None and expected.abstains != reply.abstained:
        expectation = (
            "should have abstained" if expected.abstains else "abstained, but the documents answer this"
        )
        return [Finding(expectation)]
    if expected.abstains and reply.citations:
        return [Finding("abstained but cites sources")]
    cited = {(citation["filename"], citation.get("page_number")) for citation in reply.citations}
    missing = [Finding(f"does not say {words!r}") for words in expected.says if words not in reply.text]
    return missing + [
        Finding(f"does not cite {name}, page {page}")
        for name, page in expected.cites.items()
        if (name, page) not in cited
    ]


def _pdf_pages(path: Path) -> list[str]:
    document = pypdfium2.PdfDocument(path)
    try:
        return [page.get_textpage().get_text_bounded() for page in document]
    finally:
        document.close()
