"""Captions for new figures, written by the vision model, or derived by rule if the model fails.

Each caption is stored with its picture immediately, so that a retried step doesn't call the model again.
"""

import asyncio
import base64
from collections.abc import Sequence

from shared.access.daily_use import Usage
from shared.documents import figure_store
from shared.documents.models import Caption, Figure, Original
from shared.evidence.reader_text import readable_line
from shared.ingestion import copies
from shared.ingestion.chunking import caption_by_rule
from shared.ingestion.models import BlockChanges, ParsedFile
from shared.ingestion.task import IngestTask
from shared.platform.errors import GroundworkError, OutputCutError
from shared.platform.language_models.models import CallLimits, Prompt
from shared.platform.prompts import element, load
from shared.platform.telemetry import get_logger

# Maximum length of a caption, about four sentences. Captions are stored as blob metadata, which is limited to
# 8 KiB; in Chinese, this length takes 5 KiB.
MAX_CAPTION_CHARS = 1200
# Maximum number of concurrent model calls per step. Up to four steps run at the same time (unmeasured).
MAX_CONCURRENT_CALLS = 4
_OUTPUT_TOKENS = 1000


async def caption(task: IngestTask, figures: Sequence[Figure], original: Original) -> None:
    """Caption the figures that a model hasn't captioned yet, and store each caption with its picture.

    Raises:
        DependencyError, RateLimitError: the model is unavailable, and this isn't the last attempt.
    """
    await task.enter("captioning")
    captions = await figure_store.captions(task.blobs, task.folder)
    copied = await copies.captions_of(original, task.blobs)
    open_figures = [
        figure for figure in figures if figure.key not in captions or not captions[figure.key].by_model
    ]
    slots = asyncio.Semaphore(MAX_CONCURRENT_CALLS)

    async def caption_one(figure: Figure) -> Caption:
        async with slots:
            content = await figure_store.picture(task.blobs, task.folder, figure.key)
            new_caption = copied.get(figure.key)
            if new_caption is None:
                text = await _ask_model(task, figure, content)
                new_caption = Caption(text=text or caption_by_rule(figure), by_model=bool(text))
            await figure_store.put_caption(task.blobs, task.folder, figure.key, content, new_caption)
        return new_caption

    replies = await asyncio.gather(*map(caption_one, open_figures), return_exceptions=True)
    new_captions = [
        reply
        for figure, reply in zip(open_figures, replies, strict=True)
        if isinstance(reply, Caption) and figure.key not in copied
    ]
    calls = sum(reply.by_model for reply in new_captions)
    task.used = task.used.plus(Usage(captions=calls))
    task.model_calls["captioning"] += calls
    await task.update()
    for reply in replies:
        if isinstance(reply, BaseException):
            raise reply


def new_figures(parsed: ParsedFile, changes: BlockChanges) -> tuple[Figure, ...]:
    """Return the figures whose blocks are new, in document order."""
    first = len(parsed.chunks)
    return tuple(parsed.figures[position - first] for position in changes.new if position >= first)


async def _ask_model(task: IngestTask, figure: Figure, content: bytes) -> str:
    """Return a caption written by the model, at most `MAX_CAPTION_CHARS` long. If the model fails on the last
    attempt, return "".
    """
    prompt = _prompt(figure, content)
    timeout_s = task.services.settings.ingestion.caption_timeout_s
    limits = CallLimits(timeout_s=timeout_s, max_output_tokens=_OUTPUT_TOKENS)
    text = ""
    try:
        async for piece in task.services.vision_model.stream(prompt, limits):
            text += piece
    except OutputCutError:
        # The model reached its output limit: use the text written so far.
        pass
    except GroundworkError as failed:
        if task.is_retried_after(failed):
            raise
        get_logger().warning("figure.caption_fallback", figure=figure.key[:16], error_type=failed.code)
        return ""
    return readable_line(text)[:MAX_CAPTION_CHARS]


def _prompt(figure: Figure, content: bytes) -> Prompt:
    place = figure.heading_path
    if figure.page_number is not None:
        place = f"page {figure.page_number}, {place}" if place else f"page {figure.page_number}"
    around = f"{figure.label}\n{figure.context}".strip()
    material = {
        "label": figure.label,
        "surrounding_text": around,
        "words_in_picture": figure.words,
        "place": place,
    }
    user = "\n".join(element(name, text) for name, text in material.items() if text)
    picture = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    return Prompt(name="caption", system=load("ingestion", "caption"), user=user, picture_url=picture)
