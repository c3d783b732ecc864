"""Parser for e-mail files (RFC 5322): subject, sender, recipients, date and body. It makes no network
requests.
"""

from email import policy
from email.errors import MessageError
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from pathlib import Path

from shared.documents.models import Element, ParsedDocument
from shared.ingestion.parsers.context import ParseContext
from shared.ingestion.parsers.html import parse_html_text
from shared.ingestion.parsers.text import text_paragraphs
from shared.platform.errors import BadDocumentError

_SHOWN = ("From", "To", "Cc", "Date")
_NECESSARY = ("From", "To", "Date", "Subject", "Message-ID", "Received", "MIME-Version")
# The standard library raises these for malformed headers, in addition to its documented errors.
_HEADER_ERRORS = (MessageError, ValueError, IndexError, AttributeError, TypeError, LookupError)


def parse_eml(path: Path, _context: ParseContext | None = None) -> ParsedDocument:
    """Parse an e-mail's headers and body. Attachments are only listed in a warning.

    Raises:
        BadDocumentError: the file is not an e-mail.
    """
    with path.open("rb") as file:
        message = BytesParser(EmailMessage, policy=policy.default).parse(file)
    if not any(name in message for name in _NECESSARY):
        raise BadDocumentError(
            "The content is not an e-mail: it has no sender, date or subject.",
            "Save the e-mail again as .eml, or give the file the suffix of its format.",
            failure="wrong_suffix",
        )
    subject = _header(message, "Subject")
    head = "\n".join(f"{name}: {value}" for name in _SHOWN if (value := _header(message, name)))
    elements = [Element(kind="heading", text=subject, level=1)] if subject else []
    elements += [Element(kind="paragraph", text=head)] if head else []
    attached = [part.get_filename() or part.get_content_type() for part in message.iter_attachments()]
    left_out = f"Attachments were ignored: {', '.join(attached)}. Upload them separately."
    return ParsedDocument(
        elements=(*elements, *_body(message)),
        title=subject or None,
        author=_header(message, "From") or None,
        date=_sent_on(message),
        warnings=(left_out,) if attached else (),
    )


def _sent_on(message: EmailMessage) -> str | None:
    """Return the day on which the message was sent, in the sender's time zone. Return None if the date header
    is missing or malformed.
    """
    try:
        return parsedate_to_datetime(_header(message, "Date")).date().isoformat()
    except _HEADER_ERRORS:
        return None


def _body(message: EmailMessage) -> tuple[Element, ...]:
    """Return the elements of the body. The HTML version is preferred, because it marks lists and tables."""
    for kind in ("html", "plain"):
        part = message.get_body(preferencelist=(kind,))
        text = _content(part) if isinstance(part, EmailMessage) else ""
        elements = parse_html_text(text).elements if kind == "html" else tuple(text_paragraphs(text))
        if elements:
            return elements
    return ()


def _content(part: EmailMessage) -> str:
    try:
        content = part.get_content()
    except (LookupError, ValueError):
        # The character set is unknown, or the text doesn't match it.
        payload = part.get_payload(decode=True)
        content = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
    return content.replace("\r\n", "\n") if isinstance(content, str) else ""


def _header(message: EmailMessage, name: str) -> str:
    """Return a decoded header on one line, or "" if it is missing or too malformed to read."""
    try:
        return " ".join(str(message.get(name, "")).split())
    except _HEADER_ERRORS:
        return ""
