"""Scenarios in which the run asks the user a question."""

from tests.golden.answers import PRESSURE, PROVED, REVENUE
from tests.golden.scenario import plan, scenario
from tests.golden.stage import Stage
from tests.golden.tools import calls

WHICH = "What was the revenue in the report?"
AMBIGUOUS = plan(standalone_question=WHICH, search_queries=["revenue"], document_references=["report"])
DAY_S = 86_400.0


@scenario()
async def clarification_answered(stage: Stage) -> None:
    """Answer a clarification with the number of one of two documents."""
    stage.model.script(plan=[AMBIGUOUS], answer=[REVENUE])
    run_id = await stage.begin_and_wait(WHICH)
    await stage.reply(run_id, choice=2)
    await stage.end_of(run_id, WHICH)


@scenario()
async def clarification_in_words(stage: Stage) -> None:
    """Choose all documents in words, after a first reply with a number that isn't among the options."""
    stage.model.script(plan=[AMBIGUOUS], answer=[REVENUE])
    run_id = await stage.begin_and_wait(WHICH)
    await stage.reply(run_id, choice=7)
    await stage.reply(run_id, text="both of them")
    await stage.end_of(run_id, WHICH)


@scenario()
async def clarification_with_other_words(stage: Stage) -> None:
    """Reply to a clarification with words that choose no option and become part of the question."""
    stage.model.script(plan=[AMBIGUOUS], answer=[REVENUE])
    run_id = await stage.begin_and_wait(WHICH)
    await stage.reply(run_id, text="the one with the highest revenue")
    await stage.end_of(run_id, WHICH)


@scenario()
async def clarification_expired(stage: Stage) -> None:
    """Leave the clarification unanswered for three days."""
    stage.model.script(plan=[AMBIGUOUS], answer=[REVENUE])
    run_id = await stage.begin_and_wait(WHICH)
    await stage.end_of(run_id, WHICH, advance_s=DAY_S)


@scenario()
async def model_asks(stage: Stage) -> None:
    """Answer a question that the model asks."""
    question_call = calls(
        ("ask_user", {"question": "Which pump?", "options": ["the small one", "the large one"]})
    )
    stage.model.script(plan=[plan()], answer=[question_call, PROVED])
    run_id = await stage.begin_and_wait(PRESSURE)
    await stage.reply(run_id, text="the large one")
    await stage.end_of(run_id, PRESSURE)


@scenario()
async def cancelled_while_waiting(stage: Stage) -> None:
    """Cancel a run that waits for a reply."""
    stage.model.script(plan=[AMBIGUOUS])
    run_id = await stage.begin_and_wait(WHICH)
    await stage.cancel(run_id)
    await stage.reply(run_id, choice=1)
    await stage.end_of(run_id, WHICH)
