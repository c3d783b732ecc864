"""Stored answers as they are read: their figures get signed addresses that are good from now on.

Whoever hands out a stored answer sends it through here. The answer's text is left as it is: it holds
addresses of our own API only.
"""

from collections.abc import Sequence

from shared.agents.figures import readable_documents, signed_urls
from shared.core.figure_links import blob_name_of_path
from shared.errors import GroundworkError
from shared.models.blobs import SignedUrl
from shared.models.figures import AnswerFigure
from shared.models.identity import UserContext
from shared.models.runs import RunAnswer
from shared.services import Services
from shared.telemetry import get_logger


async def refresh_answer(answer: RunAnswer, user: UserContext, services: Services) -> RunAnswer:
    """The answer, with signed addresses for those figures that `user` may read now."""
    return (await refresh_answers([answer], user, services))[0]


async def refresh_answers(
    answers: Sequence[RunAnswer], user: UserContext, services: Services
) -> list[RunAnswer]:
    """The same for the answers of a whole thread, in order, with one question to the index.

    Never raises for a service that does not answer: an answer without signed addresses can still be read.
    """
    figures = [figure for answer in answers for figure in answer.figures]
    if not figures:
        return list(answers)
    signed = await _signed_of(figures, user, services)
    return [
        answer.model_copy(update={"figures": tuple(_with_url(figure, signed) for figure in answer.figures)})
        for answer in answers
    ]


async def _signed_of(
    figures: Sequence[AnswerFigure], user: UserContext, services: Services
) -> dict[str, SignedUrl]:
    """Signed addresses by the figures' paths."""
    try:
        readable = await readable_documents({figure.doc_id for figure in figures}, user, services)
    except GroundworkError as failed:
        get_logger().warning("figure.not_signed", error_type=failed.code)
        return {}
    # The path names the blob, and only the document in that name counts.
    blob_names = {figure.path: blob_name_of_path(figure.path) for figure in figures}
    allowed = {path: name for path, name in blob_names.items() if name and name.partition("/")[0] in readable}
    urls = await signed_urls(allowed.values(), services)
    return {path: urls[name] for path, name in allowed.items() if name in urls}


def _with_url(figure: AnswerFigure, signed: dict[str, SignedUrl]) -> AnswerFigure:
    url = signed.get(figure.path)
    return figure.model_copy(
        update={
            "image_url": url.url if url else None,
            "image_url_expires_at": url.expires_at if url else None,
        }
    )
