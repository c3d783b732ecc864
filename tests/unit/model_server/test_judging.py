"""Tests for grading passages with the requests that a real model receives."""

from pydantic import BaseModel

from local.model_server.embedding.service import EmbeddingService
from local.model_server.protocol.requests import JsonSchema
from local.model_server.tasks import fill_schema
from shared.retrieval.reranking import PassageGrades, PassageScores
from tests.unit.model_server.conftest import request

QUESTION = "<question>At what pressure does the relief valve open?</question>"
PASSAGES = """<passages>
<passage number="1" document="menu.pdf">The canteen serves soup and salad on Mondays.</passage>
<passage number="2" document="manual.pdf" heading="3 Valves">The relief valve opens at 9 bar.</passage>
<passage number="3" document="manual.pdf">Valves are checked once a year by a person who is trained.</passage>
</passages>"""


def filled(kind: type[BaseModel], message: str, embedder: EmbeddingService) -> BaseModel:
    schema = JsonSchema(name=kind.__name__, schema=kind.model_json_schema())
    return kind.model_validate_json(fill_schema(schema, request(message), embedder))


def test_the_passage_that_answers_scores_best(embedder: EmbeddingService) -> None:
    scores = filled(PassageScores, QUESTION + PASSAGES, embedder)
    assert isinstance(scores, PassageScores)
    by_number = {item.number: item.score for item in scores.scores}
    assert by_number[2] > by_number[3] > by_number[1]


def test_the_end_of_a_long_passage_counts(embedder: EmbeddingService) -> None:
    filler = "The canteen serves soup. " * 80
    passages = (
        f'<passages><passage number="1">{filler}</passage>'
        f'<passage number="2">{filler}The relief valve opens at 9 bar of pressure.</passage></passages>'
    )
    scores = filled(PassageScores, QUESTION + passages, embedder)
    assert isinstance(scores, PassageScores)
    assert scores.scores[1].score > scores.scores[0].score


def test_what_has_nothing_to_do_with_the_question_is_graded_out(embedder: EmbeddingService) -> None:
    grades = filled(PassageGrades, QUESTION + PASSAGES, embedder)
    assert isinstance(grades, PassageGrades)
    relevant = {item.number: item.relevant for item in grades.grades}
    assert (relevant[1], relevant[2]) == (False, True)
