"""Tests that no model output becomes a link, an image or a source in a chat."""

import json

import pytest

from shared.evidence.reader_text import readable
from shared.teams.markdown import for_channel
from shared.teams.outgoing import in_words, messages_of, split
from tests.contract.injection import shown
from tests.fakes.models import ScriptedChatModel
from tests.unit.evidence.reader_text_corpus import hostile_texts, live_parts
from tests.unit.functions.test_model_texts import REPLIES
from tests.unit.teams.chat import QUESTION, chat
from tests.world import Model, plan

pytestmark = pytest.mark.attack("forged names")


LINK = "[Sign in](https://evil.example/login)"


@pytest.mark.parametrize(
    "text",
    [
        f"````\n{'x ' * 60}\n```\n{LINK}\n````\n",
        f"```\n```js\n{'x ' * 60}\n{LINK}\n```\n",
        f"{'x' * 70} `code {LINK}` {'y' * 70}",
        f"   ```\n{'x ' * 60}\n```\n{LINK}\n",
    ],
    ids=["longer fence", "fence within code", "code span", "indented fence"],
)
def test_a_message_that_is_cut_in_code_shows_no_link(text: str) -> None:
    parts = split(readable(text), 120)
    assert len(parts) > 1
    assert [live_parts(part) for part in parts] == [[] for _ in parts]


def test_no_hostile_text_becomes_live_in_a_chat_client() -> None:
    for text, source in hostile_texts(400, 13):
        channel_text, tables = for_channel(readable(text + text), "p. {}")
        cells = (cell for table in tables for row in (table.header, *table.rows) for cell in row)
        for part in (*split(channel_text, source.randint(40, 200)), *cells):
            assert live_parts(part) == [], text


class Scripted(Model):
    """A model that gives the replies of each kind in order."""

    def __init__(self, kind: str) -> None:
        super().__init__(plan())
        self._kind = kind

    def chat_model(self) -> ScriptedChatModel:
        return ScriptedChatModel(*REPLIES[self._kind])


@pytest.mark.parametrize("kind", ["small talk and todo", "todo", "thought", "gap", "question and options"])
async def test_what_a_chat_shows_is_harmless(kind: str) -> None:
    bot = await chat(Scripted(kind))
    (message,) = await bot.write(QUESTION)
    for text in (message.reply.text, in_words(message.reply, "en"), "".join(message.pieces), *message.lines):
        assert live_parts(text) == []
        assert set(shown.sources(text)) <= {"manual.pdf"}
    assert "https://evil" not in json.dumps(messages_of(message.conversation, message.reply))
