"""Changes to one document by its owner or an administrator: metadata, access, another try, deletion."""

import uuid
from typing import TYPE_CHECKING

import azure.durable_functions as df
import azure.functions as func

from functions.etags import PASSING, etag_of, is_conditional, require_match, tagged_response
from functions.http_io import Request, Response, endpoint, json_response, read_model
from functions.identity import caller_of
from functions.ingest import start_ingestion
from functions.ready import ready_services
from shared.errors import PreconditionFailedError

if TYPE_CHECKING:
    from shared.models.identity import UserContext
    from shared.models.ingestion import DocumentState
    from shared.services import Services

blueprint = df.Blueprint()


@blueprint.route(route="documents/{doc_id}", methods=["PATCH"], auth_level=func.AuthLevel.ANONYMOUS)
@blueprint.durable_client_input(client_name="client")
@endpoint
async def correct_document(req: Request, client: df.DurableOrchestrationClient) -> Response:
    """Correct metadata: the fields that are sent hold from now on, also when the file is ingested again."""
    # Imported when used: a worker that starts does not wait for it.
    from shared.agents.documents import get_own_document
    from shared.ingestion.changing import changeable, correct, corrections_of
    from shared.models.uploads import MetadataCorrection

    user = await caller_of(req)
    corrections = corrections_of(await read_model(req, MetadataCorrection))
    services = await ready_services()
    state = await changeable(req.path_params["doc_id"], user, services)
    await _require_match(req, state, user, services)
    try:
        again = await correct(state, corrections, services, only_unchanged=is_conditional(req.headers))
    except PreconditionFailedError:
        await _start(client, state.blob_name)  # an event may have come while the document was held
        raise
    if again:
        await _start(client, state.blob_name)
    changed = await changeable(state.doc_id, user, services)
    return tagged_response(req, await get_own_document(changed, user, services), PASSING)


@blueprint.route(route="documents/{doc_id}/access", methods=["PUT"], auth_level=func.AuthLevel.ANONYMOUS)
@blueprint.durable_client_input(client_name="client")
@endpoint
async def change_access(req: Request, client: df.DurableOrchestrationClient) -> Response:
    """Set who may read it. It holds for the next query; nothing is parsed and no model is called."""
    from shared.agents.documents import get_own_document
    from shared.ingestion.changing import change_access as change
    from shared.ingestion.changing import changeable
    from shared.models.uploads import AccessChange

    user = await caller_of(req)
    wanted = await read_model(req, AccessChange)
    services = await ready_services()
    state = await changeable(req.path_params["doc_id"], user, services)
    await _require_match(req, state, user, services)
    if await change(state, wanted, services, only_unchanged=is_conditional(req.headers)):
        await _start(client, state.blob_name)
    changed = await changeable(state.doc_id, user, services)
    return tagged_response(req, await get_own_document(changed, user, services), PASSING)


@blueprint.route(route="documents/{doc_id}/reingest", methods=["POST"], auth_level=func.AuthLevel.ANONYMOUS)
@blueprint.durable_client_input(client_name="client")
@endpoint
async def reingest_document(req: Request, client: df.DurableOrchestrationClient) -> Response:
    """Ingest the file once more, also one that failed three times. 202."""
    from functions.requests import admitted
    from shared.agents.documents import get_own_document
    from shared.ingestion.changing import changeable, try_again

    user = await caller_of(req)
    services = await ready_services()
    await admitted(req, user, services)
    state = await changeable(req.path_params["doc_id"], user, services)
    await try_again(state, services)
    await _start(client, state.blob_name)
    headers = {"Location": f"/api/documents/{state.doc_id}"}
    return json_response(await get_own_document(state, user, services), 202, headers)


@blueprint.route(route="documents/{doc_id}", methods=["DELETE"], auth_level=func.AuthLevel.ANONYMOUS)
@blueprint.durable_client_input(client_name="client")
@endpoint
async def delete_document(req: Request, client: df.DurableOrchestrationClient) -> Response:
    """Delete the file and everything made of it. 202: it is out of the list; the rest goes within moments."""
    from shared.ingestion.changing import changeable, delete
    from shared.models.document_views import DocumentDeleting

    user = await caller_of(req)
    services = await ready_services()
    state = await changeable(req.path_params["doc_id"], user, services)
    await _require_match(req, state, user, services)
    await delete(state, services)
    await _start(client, state.blob_name)
    return json_response(DocumentDeleting(doc_id=state.doc_id), 202)


async def _require_match(
    request: Request, state: "DocumentState", user: "UserContext", services: "Services"
) -> None:
    """Refuse a change to a document that is not as its caller says (If-Match). PreconditionFailedError."""
    from shared.agents.documents import get_own_document

    if is_conditional(request.headers):
        require_match(request.headers, etag_of(await get_own_document(state, user, services), PASSING))


async def _start(client: df.DurableOrchestrationClient, blob_name: str) -> None:
    await start_ingestion(client, blob_name, f"{blob_name} asked for {uuid.uuid4().hex}")
