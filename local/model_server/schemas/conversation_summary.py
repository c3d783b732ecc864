"""ConversationSummary: what was asked, and the first sentence of each answer; the older summary before it.

Extractive like all that this model writes: every word stands in the prompt, but for the two that join a
question with its answer.
"""

from collections.abc import Sequence

from pydantic import JsonValue

from local.model_server.prompt_reader import Turn, element_text, read_turns
from local.model_server.schemas.task import SchemaTask
from local.model_server.text.central import central_indices
from local.model_server.text.sentences import split_sentences

MAX_WORDS = 200  # as the prompt asks
MAX_SENTENCE_WORDS = 40


def summarise_conversation(task: SchemaTask) -> dict[str, JsonValue]:
    """{"summary": text of at most 200 words}. What is new is kept before what was summarised already."""
    new = _exchanges(read_turns(task.message))
    old = split_sentences(element_text(task.message, "previous_summary") or "")
    room = MAX_WORDS - _words(new)
    while new and room < 0:
        room += len(new.pop(0).split())
    return {"summary": " ".join([*_fitting(old, room, task), *new])}


def _exchanges(turns: Sequence[Turn]) -> list[str]:
    """'Asked: … Answered: …' for each question, in order."""
    said: list[str] = []
    for turn in turns:
        sentence = _first_sentence(turn.text)
        if not sentence:
            continue
        if turn.role == "user":
            said.append(f"Asked: {sentence}")
        elif said:
            said[-1] = f"{said[-1]} Answered: {sentence}"
    return said


def _first_sentence(text: str) -> str:
    sentences = split_sentences(" ".join(text.split()))
    words = sentences[0].split() if sentences else []
    cut = " ".join(words[:MAX_SENTENCE_WORDS])
    return f"{cut} …" if len(words) > MAX_SENTENCE_WORDS else cut


def _fitting(sentences: Sequence[str], room: int, task: SchemaTask) -> list[str]:
    """Those that say most of the whole, in their order, within `room` words."""
    kept = list(sentences)
    while len(kept) > 1 and _words(kept) > room:
        kept = [kept[index] for index in central_indices(kept, len(kept) - 1, task.embedder)]
    return kept if _words(kept) <= room else [" ".join(kept[0].split()[: max(room - 1, 0)]) + " …"]


def _words(sentences: Sequence[str]) -> int:
    return sum(len(sentence.split()) for sentence in sentences)
