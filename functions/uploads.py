"""POST /api/documents: a file through the app, or an address for a large one past it."""

from collections.abc import Mapping, Sequence
from typing import Any

import azure.durable_functions as df
import azure.functions as func

from functions.http_io import Request, Response, endpoint, json_response, read_model, validated
from functions.identity import caller_of
from functions.ingest import start_ingestion
from functions.multipart import MAX_FIELDS_BYTES, FileForm
from functions.ready import ready_services
from shared.errors import CallerError, PayloadTooLargeError
from shared.models.uploads import UploadForm, UploadRequest

blueprint = df.Blueprint()

_FIELDS = tuple(name for name in UploadForm.model_fields if name != "file")


@blueprint.route(route="documents", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
@blueprint.durable_client_input(client_name="client")
@endpoint
async def upload_document(req: Request, client: df.DurableOrchestrationClient) -> Response:
    """A form: `folder`, `project_id`, `acl` (repeated), then `file`. 202 and where its status is read."""
    from shared.agents.documents import get_own_document
    from shared.ingestion.uploading import receive

    user = await caller_of(req)
    services = await ready_services()
    _refuse_large(req.headers.get("content-length"), services.settings.max_document_bytes)
    form = FileForm(req.stream(), req.headers.get("content-type", ""))
    await form.open()
    request = _upload_request(form.filename, form.fields)
    state, etag = await receive(request, form.parts(), user, services)
    # The file's own event asks for the same instance, and finds it at work.
    await start_ingestion(client, state.blob_name, f"{state.blob_name} {etag}")
    headers = {"Location": f"/api/documents/{state.doc_id}"}
    return json_response(await get_own_document(state, user, services), 202, headers)


@blueprint.route(route="documents/uploads", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
@endpoint
async def make_upload_ticket(req: Request) -> Response:
    """An address to which the caller may write one file itself, for an hour; it is ingested when it came."""
    from shared.ingestion.uploading import make_ticket

    user = await caller_of(req)
    request = await read_model(req, UploadRequest)
    ticket = await make_ticket(request, user, await ready_services())
    return json_response(ticket, 201, {"Location": ticket.location, "Cache-Control": "no-store"})


def _upload_request(filename: str, fields: Mapping[str, Sequence[str]]) -> UploadRequest:
    """The form's fields as a request.

    Raises:
        CallerError: an unknown field, one given twice, or one of the wrong form.
    """
    unknown = sorted(set(fields) - set(_FIELDS))
    if unknown:
        raise CallerError(f"There is no field {unknown[0][:40]!r}.", f"Fields: {', '.join(_FIELDS)}, file.")
    given: dict[str, Any] = {}
    for name in ("folder", "project_id"):
        values = [value for value in fields.get(name, ()) if value]
        if len(values) > 1:
            raise CallerError(f"The field {name} is given twice.", "Send it once.")
        if values:
            given[name] = values[0]
    if "acl" in fields:
        given["acl"] = [name for value in fields["acl"] for name in value.split(",") if name.strip()]
    return validated(UploadRequest, lambda: UploadRequest(filename=filename or "", **given))


def _refuse_large(content_length: str | None, max_bytes: int) -> None:
    """Refuse before anything is sent, if the sender says how much it will be."""
    if content_length and content_length.isdigit() and int(content_length) > max_bytes + MAX_FIELDS_BYTES:
        raise PayloadTooLargeError(f"The file is larger than {max_bytes:,} bytes.", "Split the file.")
