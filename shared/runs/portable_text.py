"""Replacement of figure URLs by signed ones, for clients that cannot authenticate image requests."""

import re

from shared.access.models import UserContext
from shared.documents.figures import readable_documents, signed_urls
from shared.documents.services import DocumentServices
from shared.evidence.figures import name_of_path
from shared.platform.errors import GroundworkError
from shared.platform.telemetry import get_logger
from shared.runs.models import RunAnswer, RunView

_PICTURE = re.compile(r"(?<=\]\()/api/documents/[^()\s]{1,200}/figures/[^()\s]{1,200}(?=\))")
_MAX_OPEN_CHARS = 2_000  # An image link is shorter; a longer text without a closing bracket is not one.


async def with_signed_pictures(text: str, user: UserContext, services: DocumentServices) -> str:
    """Replace the URLs of figures that the user may read by signed URLs. Other figure URLs stay unchanged.

    Never raises if a service is unavailable.
    """
    names = {path: name for path in _PICTURE.findall(text) if (name := name_of_path(path))}
    if not names:
        return text
    doc_ids = {name.partition("/")[0] for name in names.values()}
    try:
        readable = await readable_documents(doc_ids, user, services)
    except GroundworkError as failed:
        get_logger().warning("figure.sign_failed", error_type=failed.code)
        return text
    allowed = {path: name for path, name in names.items() if name.partition("/")[0] in readable}
    signed = await signed_urls(allowed.values(), services)

    def address(match: re.Match[str]) -> str:
        url = signed.get(allowed.get(match[0], ""))
        return url.url if url else match[0]

    return _PICTURE.sub(address, text)


def portable_text(answer: RunAnswer) -> str:
    """Return an answer's text with its figure URLs replaced by the signed URLs in `answer.figures`."""
    signed = {figure.path: figure.image_url for figure in answer.figures if figure.image_url}
    return _PICTURE.sub(lambda match: signed.get(match[0], match[0]), answer.text)


def portable_view(view: RunView) -> RunView:
    """Return a copy of the run for API clients. Its figure URLs are signed, so they need no
    authentication.
    """
    if view.answer is None:
        return view
    answer = view.answer.model_copy(update={"text": portable_text(view.answer)})
    return view.model_copy(update={"answer": answer})


def split_at_open_picture(text: str) -> tuple[str, str]:
    """Split streamed text into a part to send now and a trailing incomplete image link, which must wait for
    more text.
    """
    at = text.rfind("![")
    if at < 0:
        return (text[:-1], "!") if text.endswith("!") else (text, "")
    is_complete = re.match(r"!\[[^\n]*\]\([^()\s]*\)", text[at:]) is not None
    is_open = not is_complete and "\n" not in text[at:] and len(text) - at <= _MAX_OPEN_CHARS
    return (text[:at], text[at:]) if is_open else (text, "")
