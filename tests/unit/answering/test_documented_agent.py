"""Runs the example agent of docs/extend.md exactly as the page shows it."""

import pytest

from shared.platform.language_models.models import ModelTurn, ToolCall
from tests.documented import documented_module, marked_blocks
from tests.fakes.models import ScriptedChatModel
from tests.world import ANNA, corpus_services


async def test_the_documented_agent_finds_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    search_call = ToolCall(call_id="c", name="rag_metadata_search", arguments='{"query": "manual"}')
    model = ScriptedChatModel(ModelTurn(tool_calls=(search_call,)), "<answer>The manual of the pump.")
    program = documented_module("ask_librarian", marked_blocks("docs/extend.md")["agent"], monkeypatch)
    answer = await program.ask("Which manual is there?", await corpus_services(chat_model=model), ANNA)
    assert answer == "The manual of the pump."
    assert "manual.pdf" in model.conversations[1][-1].text
