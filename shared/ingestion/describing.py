"""The step that makes a document's metadata: by the chat model, or by rule when the model cannot."""

from functools import cache, partial
from pathlib import Path

from shared.documents.metadata import describe_by_rule, under_another_name, with_language_code
from shared.documents.models import DescribedFile
from shared.documents.state import DocumentState
from shared.ingestion import extracted, work_files
from shared.ingestion.accepting import pipeline
from shared.ingestion.claims import look, update, with_model_calls, with_status
from shared.ingestion.copies import find_original
from shared.ingestion.models import Described, IngestStep, ParsedFile
from shared.ingestion.services import IngestionServices
from shared.platform.blobs import BlobStore
from shared.platform.errors import GroundworkError, ModelFixableError, NotFoundError
from shared.platform.language_models.models import CallLimits, ChatModel, Prompt
from shared.platform.prompts import element
from shared.platform.telemetry import get_logger
from shared.retrieval.models import DocumentMetadata

_PROMPT = Path(__file__).parent / "prompts" / "metadata.md"
_LIMITS = CallLimits(timeout_s=60, max_retries=1, max_output_tokens=2000)


async def describe(step: IngestStep, services: IngestionServices) -> Described:
    """Metadata from the document's first 6,000 characters, into the work container.

    What a model said of the same bytes before is used again: of a copy, or of this document before a repair.

    Raises:
        DependencyError: the model is out of reach. On the last attempt the rule takes over instead.
    """
    state = await look(services.documents, step)
    if await _is_described(step, services.blobs):
        await update(services.documents, step, _parsing)
        return Described(by_model=True)
    parsed = await work_files.get(services.blobs, step, work_files.PARSED, ParsedFile)
    metadata, calls = await _by_earlier(step, state, parsed.opening, services), 0
    if metadata is None and parsed.opening:
        metadata, calls = await _by_model(services.chat_model, step, state, parsed)
    by_model = metadata is not None
    if metadata is None:
        metadata = describe_by_rule(state.filename, parsed.title, parsed.first_heading, parsed.opening)
    await update(services.documents, step, partial(_told, calls=calls))
    metadata = with_language_code(metadata, parsed.opening)
    described = DescribedFile(**metadata.model_dump(), by_model=by_model)
    await work_files.put(services.blobs, step, work_files.METADATA, described)
    if by_model and work_files.are_kept_in_memory(step):
        # Kept now and not in the last step: there is no work file that saves a repetition the model's call.
        await extracted.keep(step, state, metadata, services.settings, services.blobs)
    return Described(by_model=by_model)


def _parsing(state: DocumentState) -> DocumentState:
    return with_status(state, "parsing")


async def _is_described(step: IngestStep, blobs: BlobStore) -> bool:
    """Whether an earlier attempt asked the model already. One that had to do without it is repeated."""
    try:
        described = await work_files.get(blobs, step, work_files.METADATA, DescribedFile)
    except NotFoundError:
        return False
    return described.by_model


async def _by_earlier(
    step: IngestStep, state: DocumentState, opening: str, services: IngestionServices
) -> DocumentMetadata | None:
    """What the model said of these bytes when it was asked last."""
    original = await find_original(step, state, services)
    for doc_id in filter(None, (state.doc_id, original.doc_id)):
        said = await extracted.get(services.blobs, doc_id)
        known = None if said is None else (said.content_hash, said.pipeline)
        if said is not None and known == (step.content_hash, pipeline(services.settings)):
            return under_another_name(said.metadata, said.filename, state.filename, opening)
    return None


async def _by_model(
    chat_model: ChatModel, step: IngestStep, state: DocumentState, parsed: ParsedFile
) -> tuple[DocumentMetadata | None, int]:
    """What the model says, None if it cannot in the form that is asked for; and how often it answered."""
    prompt = _prompt(state, parsed)
    try:
        try:
            return await chat_model.parse(prompt, DocumentMetadata, _LIMITS), 1
        except ModelFixableError as invalid:
            return await chat_model.parse(_repair(prompt, invalid), DocumentMetadata, _LIMITS), 2
    except GroundworkError as failed:
        worth_waiting = failed.retryable and not isinstance(failed, ModelFixableError)
        if worth_waiting and not step.last_attempt:
            raise
        get_logger().warning("metadata.by_rule", doc_id=state.doc_id, error_type=failed.code)
        return None, 2 if isinstance(failed, ModelFixableError) else 0


def _prompt(state: DocumentState, parsed: ParsedFile) -> Prompt:
    user = "\n".join((element("filename", state.filename), element("document", parsed.opening)))
    return Prompt(name="metadata", system=_system_prompt(), user=user)


def _repair(prompt: Prompt, invalid: ModelFixableError) -> Prompt:
    """The same again, and what was wrong with the first try."""
    told = element("previous_error", invalid.detail)
    return prompt.model_copy(update={"user": f"{prompt.user}\n{told}"})


def _told(state: DocumentState, calls: int) -> DocumentState:
    """The state once the document is described; `calls` = answers of the model."""
    return with_model_calls(_parsing(state), "parsing", calls)


@cache
def _system_prompt() -> str:
    return _PROMPT.read_text(encoding="utf-8").strip()
