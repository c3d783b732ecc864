"""Tests for answers in a single language, including gaps and notes."""

from typing import Any

import pytest

from shared.platform.language_models.models import ModelTurn
from tests.fakes.models import ScriptedChatModel
from tests.fakes.services import fake_services
from tests.unit.answering.test_answering import text_of
from tests.world import ask, corpus_services, plan

CITED = '<cite doc_id="manual" quote="The pump runs at 15 bar."/>'
MISSING = "Les documents n'indiquent pas le prix de la pompe."
NEXT = "Demandez-le au service des ventes."
GAP = f'<gap missing="{MISSING}" next_step="{NEXT}"/>'


async def answer_in(language: str, *replies: Any) -> tuple[str, list[str]]:
    """Return the text of the answer and all messages that the model received for it."""
    model = ScriptedChatModel(plan(language=language, todo=()), *replies)
    view, _ = await ask(await corpus_services(chat_model=model), question="Combien coûte la pompe ?")
    return text_of(view), [message.text for message in model.conversations[0]]


@pytest.mark.parametrize("language", ["fr", "en-GB", "de"])
async def test_a_gap_is_shown_as_the_model_wrote_it(language: str) -> None:
    text, messages = await answer_in(language, f"<answer>{GAP}")
    assert text == f"{MISSING}\n\n{NEXT}"
    assert "in the language of the answer: `missing`" in messages[0]


async def test_nor_has_one_that_is_partly_answered() -> None:
    text, _ = await answer_in("fr-CA", f"<answer>La pompe tourne à 15 bar. {CITED}\n\n{GAP}")
    assert text == f"La pompe tourne à 15 bar. (Source: manual.pdf, S. 1)[1]\n\n{MISSING}\n\n{NEXT}"


async def test_what_is_not_proved_is_marked_by_a_sign() -> None:
    text, _ = await answer_in("fr", "<answer>La pompe tourne à 15 bar.")
    assert text == "La pompe tourne à 15 bar. *(?)*"


async def test_an_answer_that_was_cut_off_ends_with_a_sign() -> None:
    text, _ = await answer_in("fr", ModelTurn(text=f"<answer>15 bar. {CITED} Et", cut=True))
    assert text == "15 bar. (Source: manual.pdf, S. 1)[1] Et\n\n*(…)*"


async def test_without_a_model_the_whole_answer_is_in_english() -> None:
    services = fake_services(chat_model=ScriptedChatModel(plan(language="fr", todo=())))
    view, _ = await ask(services, question="Combien coûte la pompe ?")
    assert text_of(view) == (
        "The documents don't answer this. What's missing: a document on this that you can read.\n\n"
        "Next step: Name the document, use other words, or ask its owner for access."
    )
