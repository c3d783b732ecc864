"""Tests for pictures that a model receives with a question or requests."""

import base64
import io
import json
from itertools import pairwise

from PIL import Image

from shared.answering.budget import Budget
from shared.answering.metering import PICTURE_TOKENS, MeteredChatModel
from shared.documents.figure_store import picture_blob
from shared.documents.ids import version_folder
from shared.platform.language_models.chat_request import conversation_request
from shared.platform.language_models.models import CallLimits, Message, ModelTurn, Picture, ToolCall
from shared.platform.language_models.protocol import ALL_FEATURES
from shared.platform.names import WORK
from shared.runs.models import RunView
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel
from tests.fakes.services import fake_settings
from tests.unit.answering.pictures import add_pictures, picture
from tests.world import ask as run_question
from tests.world import corpus_services, plan

CAPTION = "Figure 1: Pressure of the pump, a curve"
SHOWN = picture(image_caption=CAPTION)
STORED = picture_blob(version_folder("manual", "v1"), f"{1:064x}.png")


async def pictured(model: ScriptedChatModel, **settings: object) -> Services:
    """Return the test corpus with a figure in the manual that exceeds the size limit for models."""
    settings = {"subagents_enabled": False, **settings}
    services = await corpus_services(chat_model=model, settings=fake_settings(**settings))
    (vector,) = await services.embedder.embed([CAPTION], CallLimits(timeout_s=1))
    row = SHOWN.model_dump(mode="json", exclude={"score", "content", "start_seconds", "cues"})
    row |= {"image_caption_vector": list(vector), "access_control_list": ["engineering"]}
    await services.content_index.upload([row])
    content = io.BytesIO()
    Image.new("RGBA", (1600, 800), (0, 0, 0, 0)).save(content, "PNG")
    await add_pictures(services)
    await services.blobs.write(WORK, STORED, content.getvalue())
    return services


async def ask(services: Services) -> RunView:
    view, _ = await run_question(services, "What is the pressure of the pump?")
    return view


async def test_the_figures_found_go_into_the_prompt_in_reduced_size() -> None:
    model = ScriptedChatModel(plan(), f'<answer>15 bar.\n\n<figure block_id="{SHOWN.block_id}"/>')
    view = await ask(await pictured(model))
    (seen,) = model.conversations[0][1].pictures
    assert SHOWN.block_id in seen.label
    encoded = seen.url.removeprefix("data:image/jpeg;base64,")
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        assert image.size == (768, 384)
        assert image.getpixel((10, 10)) == (255, 255, 255)
    assert view.answer is not None
    assert [figure.block_id for figure in view.answer.figures] == [SHOWN.block_id]


async def test_a_figure_that_the_model_was_shown_and_did_not_choose_is_not_in_the_answer() -> None:
    model = ScriptedChatModel(plan(), '<answer>15. <cite doc_id="manual" quote="The pump runs at 15 bar."/>')
    view = await ask(await pictured(model))
    assert view.answer is not None
    assert view.answer.figures == ()


async def test_no_pictures_are_sent_where_the_setting_says_so() -> None:
    call = ToolCall(call_id="c1", name="view_figure", arguments=json.dumps({"block_id": SHOWN.block_id}))
    model = ScriptedChatModel(plan(), ModelTurn(tool_calls=(call,)), "<answer>15 bar.")
    await ask(await pictured(model, prompt_figures=0))
    assert [
        message.pictures
        for conversation in model.conversations
        for message in conversation
        if message.pictures
    ] == []
    assert CAPTION in model.conversations[-1][-1].text


async def test_a_picture_that_the_model_asks_for_follows_the_result_of_its_call() -> None:
    call = ToolCall(call_id="c1", name="view_figure", arguments=json.dumps({"block_id": SHOWN.block_id}))
    other = ToolCall(call_id="c2", name="view_figure", arguments='{"block_id": "manual-1"}')
    model = ScriptedChatModel(plan(), ModelTurn(tool_calls=(call, other)), "<answer>15 bar.")
    await ask(await pictured(model))
    first, second = model.conversations
    assert second[: len(first)] == first
    assert [message.role for message in second[len(first) :]] == ["assistant", "tool", "tool", "user"]
    assert json.loads(second[-3].text)["image_caption"] == CAPTION
    assert json.loads(second[-2].text)["type"] == "InvalidQueryError"
    assert [seen.label for seen in second[-1].pictures] == [seen.label for seen in first[1].pictures]


async def test_a_picture_that_is_none_costs_the_picture_and_not_the_answer() -> None:
    model = ScriptedChatModel(plan(), "<answer>15 bar.")
    services = await pictured(model)
    await services.blobs.write(WORK, STORED, b"no picture")
    view = await ask(services)
    assert model.conversations[0][1].pictures == ()
    assert view.status == "completed"


async def test_tokens_are_reserved_for_pictures() -> None:
    budget = Budget(10_000)
    message = Message(role="user", text="", pictures=(Picture(label="one", url="data:,"),) * 2)
    model = MeteredChatModel(ScriptedChatModel(ModelTurn(text="")), budget)
    _ = [piece async for piece in model.stream_turn([message], (), CallLimits(timeout_s=1))]
    assert budget.tokens == 2 * PICTURE_TOKENS


async def test_what_was_sent_before_is_a_prefix_of_what_is_sent_next_byte_for_byte() -> None:
    """Check that prompt caching works: runs share rules and tools, and each turn extends the messages of the
    last.
    """
    looks = [
        ToolCall(call_id="c1", name="view_figure", arguments=json.dumps({"block_id": SHOWN.block_id})),
        ToolCall(call_id="c2", name="rag_semantic_search", arguments='{"query": "revenue"}'),
        ToolCall(call_id="c3", name="rag_list_documents", arguments="{}"),
    ]
    shared_prefixes: list[list[str]] = []
    for _ in range(2):
        turns = [ModelTurn(text="I look.", tool_calls=(look,)) for look in looks]
        model = ScriptedChatModel(plan(), *turns, "<answer>15 bar.")
        await ask(await pictured(model, max_agent_turns=4))
        bodies = [
            conversation_request(messages, tools, ALL_FEATURES, may_call=number < 3).arguments
            for number, (messages, tools) in enumerate(zip(model.conversations, model.tools, strict=True))
        ]
        assert len(bodies) == 4
        assert len({json.dumps(body["tools"]) for body in bodies}) == 1
        serialized_messages = [json.dumps(body["messages"])[:-1] for body in bodies]
        assert all(later.startswith(earlier) for earlier, later in pairwise(serialized_messages))
        shared_prefixes.append([json.dumps(bodies[0]["messages"][0]), json.dumps(bodies[0]["tools"])])
    assert shared_prefixes[0] == shared_prefixes[1]
