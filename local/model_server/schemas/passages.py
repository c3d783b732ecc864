"""PassageScores and PassageGrades: numbered passages judged for a question by words and meaning.

closeness = 0.6 * best cosine of a passage's windows + 0.4 * share of the question's topic words in it, the
weights of answers/support.py; with hashing, whose cosines say little, the words alone.
"""

from collections.abc import Sequence

from pydantic import JsonValue

from local.model_server.prompt_reader import NumberedPassage, element_text, read_passages
from local.model_server.schemas.task import SchemaTask
from local.model_server.text.words import stem, stems_of, topic_words, words_of

COSINE_WEIGHT = 0.6
COVERAGE_WEIGHT = 0.4
LEAST_RELEVANT = 0.3  # see docs/model-server.md for what it keeps and drops
BEST_SCORE = 10
WINDOW_WORDS = 150  # what MiniLM reads at once
STEP_WORDS = 120


def score_passages(task: SchemaTask) -> dict[str, JsonValue]:
    """{"scores": [{"number", "score"}]}, one for each passage, 0-10."""
    judged = _closeness(task)
    return {
        "scores": [
            {"number": passage.number, "score": round(BEST_SCORE * min(max(value, 0.0), 1.0))}
            for passage, value in judged
        ]
    }


def grade_passages(task: SchemaTask) -> dict[str, JsonValue]:
    """{"grades": [{"number", "relevant"}]}, one for each passage."""
    return {
        "grades": [
            {"number": passage.number, "relevant": value >= LEAST_RELEVANT}
            for passage, value in _closeness(task)
        ]
    }


def _closeness(task: SchemaTask) -> list[tuple[NumberedPassage, float]]:
    question = element_text(task.message, "question") or ""
    passages = read_passages(task.message)
    cosines = _best_cosines(question, passages, task) if task.embedder.understands_meaning else None
    judged: list[tuple[NumberedPassage, float]] = []
    for place, passage in enumerate(passages):
        coverage = _coverage(question, f"{passage.document} {passage.heading} {passage.text}")
        value = coverage if cosines is None else COSINE_WEIGHT * cosines[place] + COVERAGE_WEIGHT * coverage
        judged.append((passage, value))
    return judged


def _best_cosines(question: str, passages: Sequence[NumberedPassage], task: SchemaTask) -> list[float]:
    """The best of each passage's windows: a long passage may hold the answer at its end."""
    windows = [(place, window) for place, passage in enumerate(passages) for window in _windows(passage)]
    best = [0.0] * len(passages)
    if not windows or not question:
        return best
    vectors = task.embedder.embed([question, *(text for _, text in windows)])
    for (place, _), cosine in zip(windows, vectors[1:] @ vectors[0], strict=True):
        best[place] = max(best[place], float(cosine))
    return best


def _windows(passage: NumberedPassage) -> list[str]:
    words = passage.text.split()
    starts = range(0, max(len(words) - (WINDOW_WORDS - STEP_WORDS), 1), STEP_WORDS)
    return [f"{passage.heading} {' '.join(words[start : start + WINDOW_WORDS])}".strip() for start in starts]


def _coverage(question: str, text: str) -> float:
    wanted = {stem(word) for word in topic_words(question)} or {stem(word) for word in words_of(question)}
    return len(wanted & set(stems_of(text))) / len(wanted) if wanted else 0.0
