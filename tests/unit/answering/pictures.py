"""A document with pictures, for tests of answers that show them."""

from datetime import UTC, datetime

from shared.access.models import UserContext
from shared.documents.figure_store import picture_blob
from shared.documents.state import DocumentState, Rights
from shared.evidence.figures import answer_figure
from shared.evidence.models import AnswerFigure
from shared.platform.names import WORK
from shared.retrieval.models import Hit
from shared.wiring import Services

ENGINEERS = ("engineering",)
PICTURE = b"\x89PNG of a pump"


def picture(doc_id: str = "manual", number: int = 1, **changes: object) -> Hit:
    """Return an image block of a document."""
    values: dict[str, object] = {
        "block_id": f"{doc_id}-figure-{number}",
        "doc_id": doc_id,
        "filename": f"{doc_id}.pdf",
        "block_type": "image",
        "page_number": number,
        "image_url": f"figures/{doc_id}/{number:064x}.png",
        "image_caption": f"Figure {number}: Pump curve of the pump",
    }
    return Hit.model_validate({**values, **changes})


def figure(doc_id: str = "manual", number: int = 1) -> AnswerFigure:
    """Return the same picture as a figure in an answer."""
    result = answer_figure(picture(doc_id, number))
    assert result is not None
    return result


async def add_pictures(
    services: Services,
    doc_id: str = "manual",
    acl: tuple[str, ...] = ENGINEERS,
    target_acl: tuple[str, ...] | None = None,
) -> None:
    """Store the state and a picture of one of the documents in `tests.world`."""
    rights = Rights(acl=acl)
    state = DocumentState(
        doc_id=doc_id,
        blob_name=f"{doc_id}.pdf",
        filename=f"{doc_id}.pdf",
        blob_etag="e",
        content_hash="c",
        version_key="v1",
        status="ready",
        rights=rights,
        wanted_rights=rights if target_acl is None else Rights(acl=target_acl),
        updated_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    stored_state = await services.documents.get(doc_id)
    if stored_state is None:
        await services.documents.create(state)
    else:
        await services.documents.replace(state.model_copy(update={"revision": stored_state.revision}))
    await services.blobs.write(WORK, picture_blob(state.folder, f"{1:064x}.png"), PICTURE)


def reader(user_id: str, *groups: str) -> UserContext:
    """Return a user who may ask questions."""
    return UserContext(user_id=user_id, groups=groups)
