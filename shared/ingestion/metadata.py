"""A document's metadata: by the chat model, else by rule; a person's corrections win over both.

What the model says of a file is kept as long as the document lives: copies of the file, and a repair, use it
again. The index of documents holds what people made of it.
"""

import re
from collections import Counter
from functools import cache, partial
from pathlib import Path, PurePosixPath

from shared.documents.models import Corrections, DescribedFile, ExtractedFile
from shared.documents.state import DocumentState
from shared.evidence.text import split_sentences
from shared.ingestion.acceptance import pipeline
from shared.ingestion.claims import METADATA, PARSED, IngestTask, with_model_calls
from shared.ingestion.copies import find_original
from shared.ingestion.models import Described, ParsedFile
from shared.platform.blobs import BlobStore
from shared.platform.errors import GroundworkError, ModelFixableError, NotFoundError
from shared.platform.language_models.models import CallLimits, Prompt
from shared.platform.names import WORK
from shared.platform.prompts import element
from shared.platform.telemetry import get_logger
from shared.retrieval.models import DocumentMetadata, DocumentRecord

EXTRACTED_FOLDER = "extracted/"
_PROMPT = Path(__file__).parent / "prompts" / "metadata.md"
_LIMITS = CallLimits(timeout_s=60, max_retries=1, max_output_tokens=2000)
_STOP_WORDS = {
    "en": frozenset("the and of to in is that for with are this be on as by it from or at".split()),
    "de": frozenset("der die und das ist den von zu mit nicht ein eine für auf im dem des sich auch".split()),
    "fr": frozenset("le la les et des est une dans pour que qui sur pas du au avec sont par plus".split()),
    "es": frozenset("el la los de que y en un una por con para del las se es no su como más".split()),
    "it": frozenset("il di che la e un per non una del sono con della gli nel alla le dei si come".split()),
    "nl": frozenset("de het een van en in is dat op te zijn met voor niet aan er door om ook".split()),
}
_WORD = re.compile(r"[^\W\d_]+")
_LANGUAGE = re.compile(r"([a-z]{2}|und)(?:[-_][a-z0-9]+)*")  # "en", "en-us"
_SAMPLE_WORDS = 600
_BRIEF_SENTENCES = 2
_STANDARD_SENTENCES = 8
_BRIEF_CHARS = 400
_STANDARD_CHARS = 1500
_TITLE_CHARS = 200
EDITABLE_FIELDS = frozenset(
    {
        "title",
        "document_type",
        "author",
        "department",
        "language",
        "tags",
        "summary_brief",
        "summary_standard",
    }
)


async def describe(task: IngestTask) -> Described:
    """Metadata from the document's first 6,000 characters, into the work container.

    What a model said of the same bytes before is used again: of a copy, or of this document before a repair.

    Raises:
        DependencyError: the model is out of reach. On the last attempt the rule takes over instead.
    """
    state = await task.look()
    try:
        described = await task.get(METADATA, DescribedFile)
        if described.by_model:  # an earlier attempt; one that had to do without the model is repeated
            return Described(by_model=True)
    except NotFoundError:
        pass
    parsed = await task.get(PARSED, ParsedFile)
    metadata, calls = await _by_earlier(task, state, parsed.opening), 0
    if metadata is None and parsed.opening:
        metadata, calls = await _by_model(task, state, parsed)
    by_model = metadata is not None
    if metadata is None:
        metadata = describe_by_rule(state.filename, parsed.title, parsed.first_heading, parsed.opening)
    await task.update(partial(with_model_calls, status="parsing", calls=calls))
    metadata = with_language_code(metadata, parsed.opening)
    described = DescribedFile(**metadata.model_dump(), by_model=by_model)
    await task.put(METADATA, described)
    if by_model and not task.stores_files:
        # Now and not in the last step: no work file saves a repetition the model's call.
        await keep_extracted(task, state, described)
    return Described(by_model=by_model)


async def _by_earlier(task: IngestTask, state: DocumentState, opening: str) -> DocumentMetadata | None:
    """What the model said of these bytes before."""
    original = await find_original(task, state)
    for doc_id in filter(None, (state.doc_id, original.doc_id)):
        try:
            said = ExtractedFile.from_stored(await task.blobs.read(WORK, _extracted_name(doc_id)))
        except NotFoundError:  # a rule described the document, or somebody asked for another try
            continue
        if (said.content_hash, said.pipeline) == (task.content_hash, pipeline(task.services.settings)):
            return under_another_name(said.metadata, said.filename, state.filename, opening)
    return None


async def _by_model(
    task: IngestTask, state: DocumentState, parsed: ParsedFile
) -> tuple[DocumentMetadata | None, int]:
    """What the model says, None if it cannot in the wanted form; and how often it answered."""
    user = "\n".join((element("filename", state.filename), element("document", parsed.opening)))
    prompt = Prompt(name="metadata", system=_system_prompt(), user=user)
    model = task.services.chat_model
    try:
        try:
            return await model.parse(prompt, DocumentMetadata, _LIMITS), 1
        except ModelFixableError as invalid:
            repaired = f"{user}\n{element('previous_error', invalid.detail)}"
            prompt = prompt.model_copy(update={"user": repaired})
            return await model.parse(prompt, DocumentMetadata, _LIMITS), 2
    except GroundworkError as failed:
        worth_waiting = failed.retryable and not isinstance(failed, ModelFixableError)
        if worth_waiting and not task.step.last_attempt:
            raise
        get_logger().warning("metadata.by_rule", doc_id=state.doc_id, error_type=failed.code)
        return None, 2 if isinstance(failed, ModelFixableError) else 0


@cache
def _system_prompt() -> str:
    return _PROMPT.read_text(encoding="utf-8").strip()


async def keep_extracted(task: IngestTask, state: DocumentState, described: DescribedFile) -> None:
    """Remember what the model said of these bytes."""
    content = ExtractedFile(
        content_hash=task.content_hash,
        pipeline=pipeline(task.services.settings),
        filename=state.filename,
        metadata=DocumentMetadata.model_validate(described.model_dump(exclude={"by_model"})),
    )
    await task.blobs.write(WORK, _extracted_name(state.doc_id), content.model_dump_json().encode())


async def remove_extracted(blobs: BlobStore, doc_id: str) -> None:
    """Forget what the model said; twice does no harm."""
    await blobs.delete(WORK, _extracted_name(doc_id))


def _extracted_name(doc_id: str) -> str:
    return f"{EXTRACTED_FOLDER}{doc_id}/metadata.json"


def describe_by_rule(
    filename: str, own_title: str | None, heading: str | None, opening: str
) -> DocumentMetadata:
    """Title from the file's properties, its first heading or its name; summaries from its first sentences."""
    stem = _stem(filename)
    sentences = [sentence for sentence in split_sentences(opening) if len(sentence.split()) > 3]
    return DocumentMetadata(
        title=(own_title or heading or stem or filename)[:_TITLE_CHARS],
        author=None,
        document_type="document",
        department=None,
        date=None,
        language=guess_language(opening),
        tags=(),
        summary_brief=_cut(" ".join(sentences[:_BRIEF_SENTENCES]), _BRIEF_CHARS),
        summary_standard=_cut(" ".join(sentences[:_STANDARD_SENTENCES]), _STANDARD_CHARS),
    )


def guess_language(text: str) -> str:
    """ISO 639-1 code by the commonest small words; "und" (undetermined) when none of six languages shows."""
    words = Counter(word.lower() for word in _WORD.findall(text)[:_SAMPLE_WORDS])
    scores = {
        language: sum(words[word] for word in stop_words) for language, stop_words in _STOP_WORDS.items()
    }
    best = max(scores, key=lambda language: scores[language])
    return best if scores[best] else "und"


def with_language_code(metadata: DocumentMetadata, opening: str) -> DocumentMetadata:
    """The metadata with an ISO 639-1 code as language: what is none ("English") is guessed from the text."""
    match = _LANGUAGE.fullmatch(metadata.language.strip().lower())
    language = match[1] if match else guess_language(opening)
    return metadata.model_copy(update={"language": language})


def under_another_name(metadata: DocumentMetadata, old: str, new: str, opening: str) -> DocumentMetadata:
    """What was said of a file, for a copy of it: a title that was the file's name gives way to the new name.

    Args:
        old, new: file names.
        opening: of the text; a title that stands there was not taken from the name.
    """
    title = _in_words(metadata.title).casefold()
    is_own = title in _in_words(opening).casefold()
    if is_own or title not in (_stem(old).casefold(), _in_words(old).casefold()):
        return metadata
    return metadata.model_copy(update={"title": _stem(new)[:_TITLE_CHARS]})


def with_corrections(record: DocumentRecord, corrections: Corrections) -> DocumentRecord:
    """The record with the fields that a person corrected as the person left them."""
    kept = {field: value for field, value in corrections.items() if field in EDITABLE_FIELDS}
    return record.model_copy(update={**kept, "edited_fields": tuple(sorted(kept))})


def _stem(filename: str) -> str:
    """A file's name in words: without its suffix, underscores as blanks."""
    return _in_words(PurePosixPath(filename).stem)


def _in_words(text: str) -> str:
    return " ".join(re.split(r"[_\s]+", text)).strip()


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return text[: text.rfind(" ", 0, limit)].rstrip() + " …"
