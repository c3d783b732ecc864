"""Title, summaries and other metadata of a document, derived by the chat model or by rules.

The description that the model makes of a version is stored in its manifest, and reused by copies and repairs.
Corrections by users override it (`shared.documents.corrections`).
"""

import re
from collections import Counter
from pathlib import PurePosixPath
from textwrap import shorten
from typing import Literal

from shared.access.security_filter import PUBLIC
from shared.documents.models import DescribedFile, Original
from shared.documents.state import DocumentState
from shared.documents.versions import read_manifest, write_manifest
from shared.evidence.reader_text import readable
from shared.evidence.text import split_sentences
from shared.ingestion.models import ParsedFile
from shared.ingestion.parsers.text import is_default_name
from shared.ingestion.task import IngestTask
from shared.platform.blobs import BlobStore
from shared.platform.errors import GroundworkError, ModelFixableError
from shared.platform.language_models.models import CallLimits, Prompt
from shared.platform.language_models.repair import parse_or_repair
from shared.platform.odata import all_of, quote, search_in
from shared.platform.prompts import element, load
from shared.platform.search import SearchRequest
from shared.platform.telemetry import get_logger
from shared.retrieval.models import DocumentMetadata

_OUTPUT_TOKENS = 2000
# A text is in a known language if it contains at least this many distinct stop words of the language, and
# they make up at least this share of its words. In ordinary text, the share is 20 to 40 %.
_MIN_SMALL_WORDS, _MIN_SMALL_SHARE = 3, 0.03
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
# A title is ambiguous if at least two other documents have it. A single one may be an earlier edition.
_MANY_NAMESAKES, _NAMESAKES_READ = 2, 50
# Maximum number of titles of other documents to show to the model.
_SHOWN_TITLES = 10
# Maximum number of words in a title search.
_QUERY_WORDS = 30
# If the access list is longer than this, the model sees no titles of other documents.
_MAX_PRINCIPALS = 20
_HEADING_MARK = re.compile(r"^#+ ", re.MULTILINE)
_BOILERPLATE = re.compile(
    r"check ?mark|securities and exchange commission|commission file number|all rights reserved|cookies?\b"
    r"|forward-looking|alle rechte vorbehalten",
    re.IGNORECASE,
)


async def describe(task: IngestTask, parsed: ParsedFile, original: Original) -> DescribedFile:
    """Return the document's metadata, which the model derives from the first 6,000 characters. If the model
    fails, rules derive it.

    If the model has described the same bytes before, for this document or its original, that description is
    reused.

    Raises:
        DependencyError: the model is unavailable, and this isn't the last attempt.
    """
    state = await task.current_state()
    if earlier := await _reuse_description(task, state, original, parsed.opening):
        return earlier
    metadata = None
    if parsed.opening:
        metadata, calls = await _ask_model(task, state, parsed)
        task.model_calls["parsing"] += calls
    by_model = metadata is not None
    if metadata is None:
        metadata = describe_by_rule(state.filename, parsed.title, parsed.first_heading, parsed.opening)
    if is_default_name(metadata.title) or await _is_shared_title(task, state, metadata.title):
        own = (_stem(state.filename) or state.filename)[:_TITLE_CHARS]
        metadata = metadata.model_copy(update={"title": own})
    metadata = _with_readable_summaries(with_language_code(metadata, parsed.opening))
    return DescribedFile(**metadata.model_dump(), by_model=by_model, described_as=state.filename)


def _with_readable_summaries(metadata: DocumentMetadata) -> DocumentMetadata:
    summaries = {
        "summary_brief": readable(metadata.summary_brief),
        "summary_standard": readable(metadata.summary_standard),
    }
    return DocumentMetadata.model_validate({**metadata.model_dump(), **summaries})


async def _is_shared_title(task: IngestTask, state: DocumentState, title: str) -> bool:
    """Return whether at least two other documents of the project have this title, so that the title doesn't
    identify a document.
    """
    titles = await _titles_like(task, state, title, top=_NAMESAKES_READ)
    return sum(other.casefold() == title.casefold() for other in titles) >= _MANY_NAMESAKES


async def _existing_titles(task: IngestTask, state: DocumentState, parsed: ParsedFile) -> list[str]:
    """Return up to ten titles of other documents in the project that resemble this document's title or file
    name, most similar first.

    Only documents that all readers of this one may read are included: the model may repeat their titles.
    """
    acl = state.wanted_rights.acl
    if not 0 < len(acl) <= _MAX_PRINCIPALS:
        return []
    readers = all_of(*(f"access_control_list/any(g: {search_in('g', (name, PUBLIC))})" for name in acl))
    text = " ".join((parsed.title or "", parsed.first_heading or "", _stem(state.filename)))
    titles = await _titles_like(task, state, text, top=_NAMESAKES_READ, mode="any", readers=readers)
    return list(dict.fromkeys(titles))[:_SHOWN_TITLES]


async def _titles_like(
    task: IngestTask,
    state: DocumentState,
    text: str,
    *,
    top: int,
    mode: Literal["any", "all"] = "all",
    readers: str | None = None,
) -> list[str]:
    """Return the titles of other documents in the project that match the words of a text, best match first.

    Args:
        readers: filter on the access lists of the other documents; None = no filter.
    """
    words = " ".join(_WORD.findall(text)[:_QUERY_WORDS])
    if not words:
        return []
    project_id = state.wanted_rights.project_id
    others = all_of(
        f"doc_id ne {quote(state.doc_id)}",
        f"project_id eq {quote(project_id) if project_id else 'null'}",
        readers,
    )
    request = SearchRequest(
        text=words,
        search_fields=("title",),
        search_mode=mode,
        filter=others,
        select=("doc_id", "title"),
        top=top,
    )
    rows = (await task.services.documents_index.search(request)).rows
    return [title for row in rows if (title := str(row.get("title") or ""))]


async def _reuse_description(
    task: IngestTask, state: DocumentState, original: Original, opening: str
) -> DescribedFile | None:
    """Return metadata that the model derived earlier from the same bytes, either for this document or for the
    original that it copies. Return None if there is none.
    """
    for folder in filter(None, (task.folder if state.version_key else "", original.folder)):
        manifest = await read_manifest(task.blobs, folder)
        described = manifest.described if manifest else None
        # Metadata derived by rule isn't reused. If a user requested this ingestion, the stored metadata was
        # deleted before.
        if described is not None and described.by_model:
            return under_another_name(described, state.filename, opening)
    return None


async def _ask_model(
    task: IngestTask, state: DocumentState, parsed: ParsedFile
) -> tuple[DocumentMetadata | None, int]:
    """Ask the model for the document's metadata. Return the metadata, or None if there is no valid reply, and
    the number of replies received.
    """
    titles = await _existing_titles(task, state, parsed)
    user = "\n".join(
        (
            element("filename", state.filename),
            *([element("file_title", parsed.title[:_TITLE_CHARS])] if parsed.title else []),
            *([element("existing_titles", "\n".join(titles))] if titles else []),
            element("document", parsed.opening),
        )
    )
    prompt = Prompt(name="metadata", system=load("ingestion", "metadata"), user=user)
    timeout_s = task.services.settings.ingestion.metadata_timeout_s
    limits = CallLimits(timeout_s=timeout_s, max_output_tokens=_OUTPUT_TOKENS)
    try:
        return await parse_or_repair(task.services.chat_model, prompt, DocumentMetadata, lambda: limits)
    except GroundworkError as failed:
        if task.is_retried_after(failed):
            raise
        get_logger().warning("metadata.fallback", doc_id=state.doc_id, error_type=failed.code)
        return None, 2 if isinstance(failed, ModelFixableError) else 0


async def forget_description(blobs: BlobStore, state: DocumentState) -> None:
    """Delete the stored metadata of a document, so that the next ingestion asks the model again."""
    manifest = await read_manifest(blobs, state.folder)
    if manifest is not None:
        await write_manifest(blobs, state.folder, manifest.model_copy(update={"described": None}))


def describe_by_rule(
    filename: str, own_title: str | None, heading: str | None, opening: str
) -> DocumentMetadata:
    """Return metadata derived without a model. The title comes from the file's properties, the first heading
    or the file name; the summaries come from the first sentences.
    """
    stem = _stem(filename)
    text = _HEADING_MARK.sub("", opening)
    sentences = [
        sentence
        for sentence in split_sentences(text)
        if len(sentence.split()) > 3 and not _BOILERPLATE.search(sentence)
    ]
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
    """Return the ISO 639-1 code of a text's language, guessed from common short words. Return "und"
    (undetermined) if there are too few.

    Tables contain almost no such words, and "par" or "plus" alone don't make a text French.
    """
    words = Counter(word.lower() for word in _WORD.findall(text)[:_SAMPLE_WORDS])
    best = max(_STOP_WORDS, key=lambda language: sum(words[word] for word in _STOP_WORDS[language]))
    hits = [words[word] for word in _STOP_WORDS[best] if words[word]]
    is_clear = len(hits) >= _MIN_SMALL_WORDS and sum(hits) >= _MIN_SMALL_SHARE * words.total()
    return best if is_clear else "und"


def with_language_code(metadata: DocumentMetadata, opening: str) -> DocumentMetadata:
    """Return the metadata with an ISO 639-1 language code. An invalid code such as "English" is replaced by a
    guess.
    """
    match = _LANGUAGE.fullmatch(metadata.language.strip().lower())
    language = match[1] if match else guess_language(opening)
    return metadata.model_copy(update={"language": language})


def under_another_name(described: DescribedFile, filename: str, opening: str) -> DescribedFile:
    """Return the metadata of a file for a copy with another name. If the title was derived from the old name,
    it is replaced.

    Args:
        filename: name of the copy.
        opening: beginning of the text; a title in it wasn't derived from the file name.
    """
    title, old = _in_words(described.title).casefold(), described.described_as
    renamed = described.model_copy(update={"described_as": filename})
    is_own = title in _in_words(opening).casefold()
    if is_own or title not in (_stem(old).casefold(), _in_words(old).casefold()):
        return renamed
    return renamed.model_copy(update={"title": _stem(filename)[:_TITLE_CHARS]})


def _stem(filename: str) -> str:
    """Return a file name without its suffix, with underscores replaced by spaces."""
    return _in_words(PurePosixPath(filename).stem)


def _in_words(text: str) -> str:
    return " ".join(re.split(r"[_\s]+", text)).strip()
