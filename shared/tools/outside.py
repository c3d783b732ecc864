"""Restrictions on a run's use of the web: which search queries it may send, and which pages it may read.
Pure.

Queries and URLs are visible to third parties. The model chooses both after reading documents, which may
contain instructions to it, so neither choice is trusted.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.platform.errors import AccessDeniedError, InvalidQueryError
from shared.platform.settings import Settings
from shared.platform.web_addresses import host_of, page_address, page_addresses, plain_addresses
from shared.retrieval.models import DocumentRecord

WEB_TOOLS = ("web_search", "web_fetch")

_RUN_WORDS = 5  # words; shorter sequences coincide by chance in texts on the same subject (not measured)
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"[\w.@+-]+")
_CODE_CHARS = 5  # minimum length of a number or identifier, so that years are not counted


@dataclass(frozen=True)
class Outside:
    """The web permissions of a run: whether it may use the web, what it may send, and which pages it may
    read.

    Attributes:
        own_words: text written by the user, which may be sent.
        shown: document text that the model has read, which must not be sent.
        addresses: pages named by the user or found by this run's searches, as `page_address` returns them.
        hosts: hosts whose pages may all be read (WEB_FETCH_HOSTS).
        is_closed: whether the documents read are too confidential for any use of the web.
    """

    own_words: str = ""
    shown: tuple[str, ...] = ()
    addresses: frozenset[str] = frozenset()
    hosts: tuple[str, ...] = ()
    is_closed: bool = False

    def require_query(self, query: str) -> None:
        """Raise an error if a search query must not be sent to the web.

        Raises:
            InvalidQueryError: it repeats document text.
            AccessDeniedError: the web may not be used.
        """
        self._require_open()
        if repeats_document(query, self.shown, self.own_words):
            raise InvalidQueryError("The query repeats text of the documents.", "Use general terms.")

    def required_page(self, url: str) -> str:
        """Return the normalised URL of a page if the run may read it; otherwise raise an error.

        Raises:
            InvalidQueryError: the URL isn't plain, or only the model named it.
            AccessDeniedError: the web may not be used.
        """
        self._require_open()
        address = page_address(url)
        if address not in self.addresses and host_of(address) not in self.hosts:
            raise InvalidQueryError(
                "Only pages found by a web search for this question, or named by the user, can be read.",
                "Search the web first and copy a result's url.",
            )
        return address

    def _require_open(self) -> None:
        if self.is_closed:
            raise AccessDeniedError(
                "The web must not be used with these documents.", "Answer without the web."
            )


def outside_of(
    settings: Settings,
    own_words: Sequence[str],
    document_texts: Iterable[str],
    search_results: Iterable[str],
    documents: Mapping[str, DocumentRecord | None],
) -> Outside:
    """Derive the web permissions of a run from what the user wrote and what the model has read so far.

    Args:
        own_words: texts written by the user, in this question and earlier ones.
        search_results: URLs of the run's search results.
        documents: documents read by the model, by doc_id; None = unknown document.
    """
    own, allowed = "\n".join(own_words), settings.web_pages.fetch_hosts
    return Outside(
        own_words=own,
        shown=tuple(document_texts),
        addresses=page_addresses(own) | plain_addresses(search_results),
        hosts=tuple(map(host_of, plain_addresses(f"https://{host}" for host in allowed))),
        is_closed=_is_confidential(settings, documents.values()),
    )


def _is_confidential(settings: Settings, documents: Collection[DocumentRecord | None]) -> bool:
    """Return whether the delegation settings forbid using the web with these documents. Unknown documents
    count as sensitive if the settings name any sensitive department.
    """
    limits = settings.subagents
    departments = {(one.department or "").casefold() for one in documents if one is not None}
    is_sensitive = not departments.isdisjoint(limits.sensitive_department_names)
    is_unknown = bool(limits.sensitive_department_names) and None in documents
    return limits.compliance_mode == "strict" or is_sensitive or is_unknown


def repeats_document(query: str, texts: Iterable[str], own_words: str) -> bool:
    """Return whether a query repeats document text that the user did not write.

    Document text means five consecutive words, an identifier of five or more characters, or a mail address.
    """
    runs, codes = _runs(query) - _runs(own_words), _codes(query) - _codes(own_words)
    if not runs and not codes:
        return False
    return any(runs & _runs(text) or codes & _codes(text) for text in texts)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return {tuple(words[place : place + _RUN_WORDS]) for place in range(len(words) - _RUN_WORDS + 1)}


def _codes(text: str) -> set[str]:
    """Return the mail addresses in a text, and the words of five or more characters that contain a digit."""
    tokens = {match.strip(".-+@") for match in _TOKEN.findall(text.casefold())}
    return {
        token
        for token in tokens
        if "@" in token or (len(token) >= _CODE_CHARS and any(sign.isdigit() for sign in token))
    }
