"""Tests that no model output gives readers a link, an image, HTML or a forged source."""

import pytest

from tests.fakes.models import ScriptedChatModel
from tests.unit.answering.late_passages import LateReports
from tests.unit.answering.test_answering import text_of
from tests.unit.evidence.reader_text_corpus import live_parts
from tests.world import ask, corpus_services, plan

pytestmark = pytest.mark.attack("forged names")

LINK = "[Sign in](https://evil.example/login)"


@pytest.mark.parametrize("opening", ["```\ncode", "   ~~~\ncode\n\n"], ids=["at line start", "indented"])
async def test_code_that_one_turn_leaves_open_hides_no_link_of_the_next(opening: str) -> None:
    cited = 'It runs. <cite doc_id="manual" quote="The pump runs at 15 bar."/>\n\n'
    first = f'<answer>{cited}{opening} <gap missing="the revenue of 2024" next_step="Ask."/>'
    replies = iter([first, f"<answer>{opening.strip()[:3]}\n{LINK}\n\n{LINK}"])
    model = ScriptedChatModel(
        answer=lambda prompt: plan(search_queries=()) if prompt.name == "plan" else next(replies)
    )
    view, _ = await ask(await corpus_services(chat_model=model, content_index=LateReports("block_id")))
    assert "Sign in" in text_of(view)
    assert live_parts(text_of(view)) == []
