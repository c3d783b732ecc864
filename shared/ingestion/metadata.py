"""A document's metadata: by the chat model, else by rule; a person's corrections win over both.

What the model says of a file is kept as long as the document lives: copies of the file, and a repair, use it
again. The index of documents holds what people made of it.
"""

import re
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import PurePosixPath
from textwrap import shorten

from shared.documents.models import Corrections, DescribedFile, ExtractedFile
from shared.documents.requests import MetadataCorrection
from shared.documents.state import DocumentState
from shared.evidence.reader_text import readable
from shared.evidence.text import split_sentences
from shared.ingestion.acceptance import pipeline
from shared.ingestion.claims import METADATA, PARSED, IngestTask, with_model_calls
from shared.ingestion.copies import find_original
from shared.ingestion.models import Done, ParsedFile
from shared.platform.blobs import BlobStore, find_model, write_model
from shared.platform.errors import GroundworkError, ModelFixableError, NotFoundError
from shared.platform.language_models.models import CallLimits, Prompt
from shared.platform.names import WORK
from shared.platform.prompts import element, load
from shared.platform.telemetry import get_logger
from shared.retrieval.models import DocumentMetadata, DocumentRecord

EXTRACTED_FOLDER = "extracted/"
_EXTRACTED = EXTRACTED_FOLDER + "{}/metadata.json"  # of a document, by its id
_OUTPUT_TOKENS = 2000
_MIN_SMALL_WORDS, _MIN_SMALL_SHARE = 3, 0.03  # different ones; of all words: a text has 20 to 40 %
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
_PRINTED_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_SAMPLE_WORDS = 600
_BRIEF_SENTENCES = 2
_STANDARD_SENTENCES = 8
_BRIEF_CHARS = 400
_STANDARD_CHARS = 1500
_TITLE_CHARS = 200


async def describe(task: IngestTask) -> Done:
    """Metadata from the document's first 6,000 characters, into the work container.

    What a model said of the same bytes before is used again: of a copy, or of this document before a repair.

    Raises:
        DependencyError: the model is out of reach. On the last attempt the rule takes over instead.
    """
    state = await task.look()
    try:
        described = await task.get(METADATA, DescribedFile)
        if described.by_model:  # an earlier attempt; one that had to do without the model is repeated
            return Done()
    except NotFoundError:
        pass
    parsed = await task.get(PARSED, ParsedFile)
    metadata, calls = await _by_earlier(task, state, parsed.opening), 0
    if metadata is None and parsed.opening:
        metadata, calls = await _by_model(task, state, parsed)
    by_model = metadata is not None
    if metadata is None:
        metadata = describe_by_rule(state.filename, parsed.title, parsed.first_heading, parsed.opening)
    await task.note(partial(with_model_calls, status="parsing", calls=calls))
    metadata = _with_readable_summaries(with_language_code(metadata, parsed.opening))
    described = DescribedFile(**metadata.model_dump(), by_model=by_model)
    await task.put(METADATA, described)
    if by_model and task.is_first:
        # Now and not in the last step: no work file saves a repetition the model's call.
        await keep_extracted(task, state, described)
    return Done()


def _with_readable_summaries(metadata: DocumentMetadata) -> DocumentMetadata:
    summaries = {
        "summary_brief": readable(metadata.summary_brief),
        "summary_standard": readable(metadata.summary_standard),
    }
    return DocumentMetadata.model_validate({**metadata.model_dump(), **summaries})


async def _by_earlier(task: IngestTask, state: DocumentState, opening: str) -> DocumentMetadata | None:
    """What the model said of these bytes before."""
    original = await find_original(task, state)
    for doc_id in filter(None, ("" if task.is_first else state.doc_id, original.doc_id)):
        said = await find_model(task.blobs, WORK, _EXTRACTED.format(doc_id), ExtractedFile)
        if said is None:  # a rule described the document, or somebody asked for another try
            continue
        if (said.content_hash, said.pipeline) == (task.content_hash, pipeline(task.services.settings)):
            return under_another_name(said.metadata, said.filename, state.filename, opening)
    return None


async def _by_model(
    task: IngestTask, state: DocumentState, parsed: ParsedFile
) -> tuple[DocumentMetadata | None, int]:
    """What the model says, None if it cannot in the wanted form; and how often it answered."""
    user = "\n".join(
        (
            element("filename", state.filename),
            *([element("file_title", parsed.title[:_TITLE_CHARS])] if parsed.title else []),
            element("document", parsed.opening),
        )
    )
    prompt = Prompt(name="metadata", system=load("ingestion", "metadata"), user=user)
    model = task.services.chat_model
    timeout_s = task.services.settings.ingestion.metadata_timeout_s
    limits = CallLimits(timeout_s=timeout_s, max_output_tokens=_OUTPUT_TOKENS)
    try:
        try:
            return await model.parse(prompt, DocumentMetadata, limits), 1
        except ModelFixableError as invalid:
            repaired = f"{user}\n{element('previous_error', invalid.detail)}"
            prompt = prompt.model_copy(update={"user": repaired})
            return await model.parse(prompt, DocumentMetadata, limits), 2
    except GroundworkError as failed:
        if task.is_retried_after(failed):
            raise
        get_logger().warning("metadata.fallback", doc_id=state.doc_id, error_type=failed.code)
        return None, 2 if isinstance(failed, ModelFixableError) else 0


async def keep_extracted(task: IngestTask, state: DocumentState, described: DescribedFile) -> None:
    """Remember what the model said of these bytes."""
    content = ExtractedFile(
        content_hash=task.content_hash,
        pipeline=pipeline(task.services.settings),
        filename=state.filename,
        metadata=DocumentMetadata.model_validate(described.model_dump(exclude={"by_model"})),
    )
    await write_model(task.blobs, WORK, _EXTRACTED.format(state.doc_id), content)


async def remove_extracted(blobs: BlobStore, doc_id: str) -> None:
    """Forget what the model said; twice does no harm."""
    await blobs.delete(WORK, _EXTRACTED.format(doc_id))


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
        summary_brief=shorten(" ".join(sentences[:_BRIEF_SENTENCES]), _BRIEF_CHARS, placeholder=" …"),
        summary_standard=shorten(
            " ".join(sentences[:_STANDARD_SENTENCES]), _STANDARD_CHARS, placeholder=" …"
        ),
    )


def guess_language(text: str) -> str:
    """Return an ISO 639-1 code by the commonest small words; "und" (undetermined) if too few show.

    A table has next to none, and "par" or "plus" alone make no French one.
    """
    words = Counter(word.lower() for word in _WORD.findall(text)[:_SAMPLE_WORDS])
    best = max(_STOP_WORDS, key=lambda language: sum(words[word] for word in _STOP_WORDS[language]))
    hits = [words[word] for word in _STOP_WORDS[best] if words[word]]
    is_clear = len(hits) >= _MIN_SMALL_WORDS and sum(hits) >= _MIN_SMALL_SHARE * words.total()
    return best if is_clear else "und"


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
    kept = {field: value for field, value in corrections.items() if field in MetadataCorrection.model_fields}
    changed: dict[str, object] = {**kept, "edited_fields": tuple(sorted(kept))}
    if isinstance(date := kept.get("document_date"), str):
        changed["document_date"] = first_instant(date)
    return record.model_copy(update=changed)


def first_instant(text: str | None) -> datetime | None:
    """The first instant, in UTC, of a day, a month or a year in ISO 8601; None for anything else."""
    match = _PRINTED_DATE.fullmatch((text or "").strip())
    if match is None:
        return None
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:  # "2024-13"
        return None


def _stem(filename: str) -> str:
    """A file's name in words: without its suffix, underscores as blanks."""
    return _in_words(PurePosixPath(filename).stem)


def _in_words(text: str) -> str:
    return " ".join(re.split(r"[_\s]+", text)).strip()
