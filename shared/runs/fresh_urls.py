"""Prepares stored answers for display: signs figure URLs and removes content that the reader may no longer
see.

Every stored answer passes through this module before it is shown. An answer calculated from a table that the
user may no longer read is withdrawn. Other texts stay unchanged: they contain only URLs of our API and of web
pages that a sub-agent found. A sub-agent's `uncertainty` is removed if any of its documents is no longer
readable, because it may reveal their contents.
"""

from collections.abc import Collection, Iterable, Sequence

from shared.access.models import UserContext
from shared.documents.figures import readable_documents, signed_urls
from shared.documents.services import DocumentServices
from shared.evidence.figures import name_of_path
from shared.evidence.messages import messages_in
from shared.evidence.models import AnswerFigure
from shared.platform.blobs import SignedUrl
from shared.platform.errors import GroundworkError
from shared.platform.telemetry import get_logger
from shared.runs.models import RunAnswer, SubagentView


def documents_behind(views: Iterable[SubagentView]) -> set[str]:
    """Return the ids of all documents that the sub-agents' `uncertainty` texts may reveal something about."""
    return {doc_id for view in views if view.uncertainty for doc_id in view.doc_ids}


def without_unreadable(
    views: Iterable[SubagentView], readable_ids: Collection[str]
) -> tuple[SubagentView, ...]:
    """Return the views, with an empty `uncertainty` for sub-agents that read a document not in
    `readable_ids`.
    """
    return tuple(
        view if set(view.doc_ids) <= set(readable_ids) else view.model_copy(update={"uncertainty": ()})
        for view in views
    )


async def refresh_answer(answer: RunAnswer, user: UserContext, services: DocumentServices) -> RunAnswer:
    """Return the answer with signed figure URLs and without content that `user` may no longer read."""
    return (await refresh_answers([answer], user, services))[0]


async def refresh_answers(
    answers: Sequence[RunAnswer], user: UserContext, services: DocumentServices
) -> list[RunAnswer]:
    """Prepare all answers of a thread as `refresh_answer` does, with a single query for their documents.

    Never raises if a service is unavailable, since an answer without signed URLs is still readable.
    """
    figures = [figure for answer in answers for figure in answer.figures]
    views = [view for answer in answers for view in answer.sub_agents]
    doc_ids = {figure.doc_id for figure in figures} | documents_behind(views) | calculation_sources(answers)
    if not doc_ids:
        return list(answers)
    readable = await _readable(doc_ids, user, services)
    signed = await _signed_of(figures, readable, services)
    return [
        answer.model_copy(
            update={
                "figures": tuple(_with_url(figure, signed) for figure in answer.figures),
                "sub_agents": without_unreadable(answer.sub_agents, readable),
            }
        )
        if calculation_sources([answer]) <= readable
        else _withdrawn_answer(answer)
        for answer in answers
    ]


def calculation_sources(answers: Iterable[RunAnswer]) -> set[str]:
    """Return the ids of the documents whose tables were used to calculate numbers in the answers."""
    cited = (citation for answer in answers for citation in answer.citations if citation.kind == "table")
    return {doc_id for citation in cited for doc_id in citation.doc_ids}


def _withdrawn_answer(answer: RunAnswer) -> RunAnswer:
    """Return a placeholder for an answer that contains numbers calculated from a table which the reader can
    no longer read.
    """
    text = messages_in(answer.language).withdrawn
    return RunAnswer(run_id=answer.run_id, text=text, language=answer.language, abstained=True)


async def refresh_views(
    views: Sequence[SubagentView], user: UserContext, services: DocumentServices
) -> tuple[SubagentView, ...]:
    """Return the sub-agent views of a run that has no answer, without texts about documents that the user may
    not read.

    Never raises, like `refresh_answers`.
    """
    doc_ids = documents_behind(views)
    readable = await _readable(doc_ids, user, services) if doc_ids else frozenset()
    return without_unreadable(views, readable)


async def _readable(doc_ids: set[str], user: UserContext, services: DocumentServices) -> frozenset[str]:
    try:
        return await readable_documents(doc_ids, user, services)
    except GroundworkError as failed:
        get_logger().warning("figure.sign_failed", error_type=failed.code)
        return frozenset()


async def _signed_of(
    figures: Sequence[AnswerFigure], readable: frozenset[str], services: DocumentServices
) -> dict[str, SignedUrl]:
    """Return signed URLs of the figures in readable documents, keyed by figure path."""
    # Permissions are those of the document named in the path, not of the figure's own `doc_id`.
    names = {figure.path: name_of_path(figure.path) for figure in figures}
    allowed = {path: name for path, name in names.items() if name and name.partition("/")[0] in readable}
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
