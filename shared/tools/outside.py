"""What a run may tell the web, and where it may go there. Pure.

Strangers see what is searched for and which address is asked for. A model that has read documents chooses
both, and a document may have told it what to choose: so neither is left to the model.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.platform.errors import AccessDeniedError, InvalidQueryError
from shared.platform.settings import Settings
from shared.platform.web_addresses import host_of, page_address, page_addresses, plain_addresses
from shared.retrieval.models import DocumentRecord

WEB_TOOLS = ("web_search", "web_fetch")

_RUN_WORDS = 5  # fewer stand by chance in texts on the same subject (unmeasured)
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"[\w.@+-]+")
_CODE_CHARS = 5  # of a number or an identifier; years are shorter


@dataclass(frozen=True)
class Outside:
    """The web, as one run may use it.

    Attributes:
        own_words: what the person wrote; that may be told.
        shown: texts of documents that the model has read; those may not.
        addresses: pages that the person named or a search of this run found, as `page_address` gives them.
        hosts: any page of theirs may be read (WEB_FETCH_HOSTS).
        is_closed: what was read is so confidential that the web is not used at all.
    """

    own_words: str = ""
    shown: tuple[str, ...] = ()
    addresses: frozenset[str] = frozenset()
    hosts: tuple[str, ...] = ()
    is_closed: bool = False

    def require_query(self, query: str) -> None:
        """Check what is to be searched for.

        Raises:
            InvalidQueryError: it repeats what stands in a document.
            AccessDeniedError: the web may not be used.
        """
        self._require_open()
        if repeats_document(query, self.shown, self.own_words):
            raise InvalidQueryError("The query repeats a passage of the documents.", "Use general terms.")

    def required_page(self, url: str) -> str:
        """The address of a page that is to be read.

        Raises:
            InvalidQueryError: it is no plain address, or nobody but the model named it.
            AccessDeniedError: the web may not be used.
        """
        self._require_open()
        address = page_address(url)
        if address not in self.addresses and host_of(address) not in self.hosts:
            raise InvalidQueryError(
                "Only pages that a web search of this question found, or that the person named, are read.",
                "Search the web first, and copy the url of a result.",
            )
        return address

    def _require_open(self) -> None:
        if self.is_closed:
            raise AccessDeniedError("The web is not used with these documents.", "Answer without it.")


def outside_of(
    settings: Settings,
    own_words: Sequence[str],
    shown: Iterable[str],
    found: Iterable[str],
    documents: Mapping[str, DocumentRecord | None],
) -> Outside:
    """How a run may use the web now.

    Args:
        own_words: what the person wrote, in this question and before it.
        found: urls of the results of its web searches.
        documents: those that the model has read from, by doc_id; None = nothing is known of one.
    """
    own, allowed = "\n".join(own_words), settings.web_pages.fetch_hosts
    return Outside(
        own_words=own,
        shown=tuple(shown),
        addresses=page_addresses(own) | plain_addresses(found),
        hosts=tuple(map(host_of, plain_addresses(f"https://{host}" for host in allowed))),
        is_closed=_is_confidential(settings, documents.values()),
    )


def _is_confidential(settings: Settings, documents: Collection[DocumentRecord | None]) -> bool:
    """The rule of the delegation policy; a document of which nothing is known may be of any department."""
    limits = settings.subagents
    departments = {(one.department or "").casefold() for one in documents if one is not None}
    is_sensitive = not departments.isdisjoint(limits.sensitive_department_names)
    is_unknown = bool(limits.sensitive_department_names) and None in documents
    return limits.compliance_mode == "strict" or is_sensitive or is_unknown


def repeats_document(query: str, shown: Iterable[str], own_words: str) -> bool:
    """Whether a query holds five words in a row, a number of five signs or more, or an address of mail that
    stand so in a text, and not among the person's words.
    """
    runs, codes = _runs(query) - _runs(own_words), _codes(query) - _codes(own_words)
    if not runs and not codes:
        return False
    return any(runs & _runs(text) or codes & _codes(text) for text in shown)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = _WORD.findall(text.casefold())
    return {tuple(words[place : place + _RUN_WORDS]) for place in range(len(words) - _RUN_WORDS + 1)}


def _codes(text: str) -> set[str]:
    """Numbers, identifiers and addresses of mail."""
    tokens = {found.strip(".-+@") for found in _TOKEN.findall(text.casefold())}
    return {
        token
        for token in tokens
        if "@" in token or (len(token) >= _CODE_CHARS and any(sign.isdigit() for sign in token))
    }
