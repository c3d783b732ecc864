"""Nothing that a model writes becomes a link, a picture or a source in a chat."""

import json

import pytest

from shared.teams.outgoing import in_words, messages_of
from tests.contract.injection import shown
from tests.fakes.models import ScriptedChatModel
from tests.unit.answering.world import Model, plan
from tests.unit.evidence.reader_text_corpus import live_parts
from tests.unit.functions.test_model_texts import REPLIES
from tests.unit.teams.chat import QUESTION, chat

pytestmark = pytest.mark.attack("forged names")


class Scripted(Model):
    """Gives the replies of a kind, one after the other."""

    def __init__(self, kind: str) -> None:
        super().__init__(plan())
        self._kind = kind

    def chat_model(self) -> ScriptedChatModel:
        return ScriptedChatModel(*REPLIES[self._kind])


@pytest.mark.parametrize("kind", ["small talk and todo", "todo", "thought", "gap", "question and options"])
async def test_what_a_chat_shows_is_harmless(kind: str) -> None:
    bot = await chat(Scripted(kind))
    (said,) = await bot.write(QUESTION)
    for text in (said.reply.text, in_words(said.reply, "en"), "".join(said.pieces), *said.lines):
        assert live_parts(text) == []
        assert set(shown.sources(text)) <= {"manual.pdf"}
    assert "https://evil" not in json.dumps(messages_of(said.conversation, said.reply))
