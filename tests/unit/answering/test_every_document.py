"""Tests for questions about all documents of a kind: the listed, the read and the omitted documents."""

from datetime import datetime
from typing import Any

import pytest

from shared.answering.delegated_documents import MOST_DOCUMENTS
from shared.answering.document_references import MAX_READ
from shared.answering.inline import RunChildren
from shared.answering.services import AnsweringServices
from shared.answering.subagent_models import SubagentEnd, SubagentStart
from shared.platform.language_models.models import ModelTurn
from shared.wiring import Services
from tests.fakes.models import ScriptedChatModel, scripted
from tests.fakes.services import fake_settings
from tests.unit.answering.test_answering import text_of
from tests.unit.subagents.lines import stored_delegation
from tests.world import add_document, ask, corpus_services, plan

YEARS = range(2011, 2025)
QUESTION = "What do all annual reports say about risks?"
ANSWER = "<answer>They name floods."


async def with_reports(*replies: Any, words: int = 10, every: str = "annual reports", **of: Any) -> Services:
    """Return the test corpus with fourteen annual and two quarterly reports."""
    question_plan = plan(every=every, search_queries=(), todo=(), standalone_question=QUESTION, **of)
    settings = fake_settings(answer_blocks=10)
    services = await corpus_services(chat_model=ScriptedChatModel(question_plan, *replies), settings=settings)
    for year in YEARS:
        await add_document(
            services,
            f"annual-report-{year}",
            f"Risks of {year} are floods. " + f"Word{year} " * words,
            title=f"Annual report {year}",
            document_type="report",
        )
    for quarter in ("q1", "q2"):
        name = f"quarterly-report-{quarter}"
        await add_document(services, name, "Risks are fires.", title=name, document_type="report")
    return services


def prompt(services: Services) -> str:
    return scripted(services.chat_model).prompts[-1].user


def listed(text: str) -> list[str]:
    """Return the non-empty lines within `<every_document>`."""
    lines = text[text.index("<every_document") : text.index("</every_document>")].splitlines()[1:]
    return [line for line in lines if line]


async def test_every_document_of_the_kind_is_listed_and_those_left_out_are_marked_and_named() -> None:
    services = await with_reports(ANSWER)
    view, _ = await ask(services, question=QUESTION)
    lines = listed(prompt(services))
    lines_by_year = zip(reversed(YEARS), lines, strict=True)
    assert all(f"annual-report-{year}.pdf" in line for year, line in lines_by_year)
    assert f'<every_document kind="annual reports" count="{len(YEARS)}">' in prompt(services)
    unread = [line for line in lines if 'read="no"' in line]
    assert unread == lines[MAX_READ:]
    assert view.answer is not None
    assert view.answer.warnings == (
        "2 of 14 matching documents were not read: annual-report-2012.pdf, annual-report-2011.pdf.",
    )


async def test_documents_of_other_kinds_are_not_read() -> None:
    services = await with_reports(ANSWER)
    await ask(services, question=QUESTION)
    assert "Risks of 2024 are floods." in prompt(services)
    assert "Risks are fires." not in prompt(services)
    assert "The pump runs" not in prompt(services)


async def test_documents_that_fit_are_all_read_whole() -> None:
    services = await with_reports(ANSWER, every="annual reports 2024")
    view, _ = await ask(services, question=QUESTION)
    (line,) = listed(prompt(services))
    assert ['read="no"' in line, 'whole="yes"' in prompt(services)] == [False, True]
    assert view.answer is not None
    assert view.answer.warnings == ()


@pytest.mark.parametrize(("query_type", "every"), [("LISTING", "annual reports"), ("CONTENT_SEARCH", "")])
async def test_other_questions_are_not_about_every_document(query_type: str, every: str) -> None:
    services = await with_reports(ANSWER, every=every, query_type=query_type)
    await ask(services, question=QUESTION)
    assert "<every_document" not in prompt(services)


async def test_a_kind_in_another_language_is_found_by_the_filters() -> None:
    filters = ({"field": "document_type", "values": ("manual",)},)
    services = await with_reports(ANSWER, every="Bedienungsanleitungen", filters=filters, language="de")
    await ask(services, question="Was sagen alle Bedienungsanleitungen?")
    (line,) = listed(prompt(services))
    assert 'filename="manual.pdf"' in line


def noting(batches: list[tuple[str, ...]]) -> RunChildren:
    """Return sub-agents that find nothing and append the documents of their tasks to `batches`."""

    async def run(
        starts: tuple[SubagentStart, ...], until: datetime, services: AnsweringServices
    ) -> tuple[SubagentEnd, ...]:
        delegation = await stored_delegation(services, starts[0].run_id, starts[0].step)
        assert delegation is not None
        batches.extend(task.doc_ids for task in delegation.tasks)
        return tuple(SubagentEnd(child_id=one.child_id, status="late") for one in starts)

    return run


async def test_long_documents_are_read_in_batches_by_sub_agents() -> None:
    services = await with_reports(ANSWER, words=900)
    batches: list[tuple[str, ...]] = []
    await ask(services, question=QUESTION, children=noting(batches))
    assert [len(batch) for batch in batches] == [MOST_DOCUMENTS, MOST_DOCUMENTS]
    read = {f"annual-report-{year}" for year in sorted(YEARS)[-MAX_READ:]}
    assert {doc_id for batch in batches for doc_id in batch} == read


async def test_a_gap_is_searched_for_in_the_documents_that_were_left_out_too() -> None:
    gap = ModelTurn(text='<answer><gap missing="The risks of 2011 are not stated."/>')
    cited = 'Floods in 2011. <cite doc_id="annual-report-2011" quote="Risks of 2011 are floods."/>'
    services = await with_reports(gap, cited, words=1)
    view, _ = await ask(services, question=QUESTION)
    assert "Floods in 2011." in text_of(view)
    assert "quarterly" not in prompt(services)
