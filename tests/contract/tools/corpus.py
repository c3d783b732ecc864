"""Four documents with different readers, as rows of both indexes."""

from datetime import UTC, datetime
from typing import Any

from shared.access.models import UserContext
from shared.platform.language_models.models import CallLimits
from shared.retrieval.models import DocumentRecord
from tests.fakes.models import HashingEmbedder

DIMENSIONS = 64
ANNA = UserContext(user_id="anna", groups=("engineering",))
BEN = UserContext(user_id="ben")

_DOCUMENTS: dict[str, dict[str, Any]] = {
    "manual": {
        "title": "Pump manual",
        "document_type": "manual",
        "department": "maintenance",
        "language": "en",
        "tags": ("pump", "safety"),
        "author": "A. Writer",
        "page_count": 12,
        "upload_date": datetime(2024, 3, 1, tzinfo=UTC),
        "access_control_list": ("engineering",),
    },
    "report-2023": {
        "title": "Annual report 2023",
        "document_type": "report",
        "department": "finance",
        "language": "en",
        "tags": ("revenue",),
        "project_id": "reports",
        "page_count": 40,
        "file_type": "xlsx",
        "document_date": datetime(2023, 12, 31, 12, tzinfo=UTC),
        "upload_date": datetime(2024, 1, 15, tzinfo=UTC),
        "access_control_list": ("*",),
    },
    "report-2024": {
        "title": "Annual report 2024",
        "document_type": "report",
        "department": "finance",
        "language": "de",
        "tags": ("revenue", "safety"),
        "project_id": "reports",
        "page_count": 44,
        "document_date": datetime(2024, 1, 1, tzinfo=UTC),  # only the year of this date is shown
        "upload_date": datetime(2025, 1, 15, tzinfo=UTC),
        "access_control_list": ("*",),
    },
    "payroll": {
        "title": "Payroll revenue pump",
        "document_type": "secret",
        "department": "people",
        "language": "fr",
        "tags": ("salary",),
        "upload_date": datetime(2025, 2, 1, tzinfo=UTC),
        "access_control_list": ("ben",),
    },
}
_TEXTS = {
    "manual-1": "The pump runs at 15 bar.",
    "manual-2": "Check the valve of the pump once a year.",
    "report-2023-1": "Revenue was 48 million euros.",
    "report-2024-1": "Revenue was 53 million euros.",
    "payroll-1": "The pump of salaries runs on revenue.",
}
PICTURE = "manual-3"


def document_records() -> list[DocumentRecord]:
    """Return the records of the four documents."""
    return [
        DocumentRecord(
            doc_id=doc_id,
            filename=f"{doc_id}.pdf",
            summary_brief=f"In brief: {doc_id}.",
            summary_standard=f"At length: {doc_id}.",
            status="ready",
            **{"file_type": "pdf", **values},
        )
        for doc_id, values in _DOCUMENTS.items()
    ]


async def block_rows(embedder: HashingEmbedder) -> list[dict[str, Any]]:
    """Return the rows of the index `content-blocks`: five texts and a picture."""
    limits = CallLimits(timeout_s=1)
    vectors = await embedder.embed([*_TEXTS.values(), "A drawing of the pump."], limits)
    rows = [
        {**_common(block_id), "content": text, "content_vector": list(vector)}
        for (block_id, text), vector in zip(_TEXTS.items(), vectors[:-1], strict=True)
    ]
    picture = {
        **_common(PICTURE),
        "block_type": "image",
        "image_url": "figures/manual/3.png",
        "image_caption": "A drawing of the pump.",
        "image_caption_vector": list(vectors[-1]),
    }
    return [*rows, picture]


def _common(block_id: str) -> dict[str, Any]:
    doc_id, _, page = block_id.rpartition("-")
    document = _DOCUMENTS[doc_id]
    return {
        "block_id": block_id,
        "doc_id": doc_id,
        "project_id": document.get("project_id"),
        "filename": f"{doc_id}.pdf",
        "document_type": document["document_type"],
        "department": document["department"],
        "page_number": int(page),
        "block_type": "text",
        "access_control_list": list(document["access_control_list"]),
    }
