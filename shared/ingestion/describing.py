"""The step that makes a document's metadata: by the chat model, or by rule when the model cannot."""

from functools import cache, partial
from pathlib import Path

from shared.core.metadata_rules import describe_by_rule
from shared.core.prompts import element
from shared.errors import GroundworkError, ModelFixableError
from shared.ingestion import work_files
from shared.ingestion.claims import enter, update, with_model_calls
from shared.models.documents import DocumentMetadata
from shared.models.ingestion import Described, DocumentState, IngestStep, ParsedFile
from shared.models.prompts import CallLimits, Prompt
from shared.ports import ChatModel
from shared.services import Services
from shared.telemetry import get_logger

_PROMPT = Path(__file__).parent / "prompts" / "metadata.md"
_LIMITS = CallLimits(timeout_s=60, max_retries=1, max_output_tokens=2000)
_BY_RULE_WARNING = "Title and summary were made by rule: the model could not describe the document."


async def describe(step: IngestStep, services: Services) -> Described:
    """Metadata from the document's first 6,000 characters, into the work container.

    Raises:
        DependencyError: the model is out of reach. On the last attempt the rule takes over instead.
    """
    state = await enter(services.documents, step, "parsing")
    if await work_files.exists(services.blobs, step, work_files.METADATA):
        return Described(by_model=True)
    parsed = await work_files.get(services.blobs, step, work_files.PARSED, ParsedFile)
    metadata, calls = None, 0
    if parsed.opening:
        metadata, calls = await _by_model(services.chat_model, step, state, parsed)
    if calls:
        await update(services.documents, step, partial(with_model_calls, status="parsing", calls=calls))
    by_model = metadata is not None
    if metadata is None:
        metadata = describe_by_rule(state.filename, parsed.title, parsed.first_heading, parsed.opening)
        if parsed.opening:
            await update(services.documents, step, _warned)
    await work_files.put(services.blobs, step, work_files.METADATA, metadata)
    return Described(by_model=by_model)


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


@cache
def _system_prompt() -> str:
    return _PROMPT.read_text(encoding="utf-8").strip()


def _warned(state: DocumentState) -> DocumentState:
    if _BY_RULE_WARNING in state.warnings:
        return state
    return state.model_copy(update={"warnings": (*state.warnings, _BY_RULE_WARNING)})
