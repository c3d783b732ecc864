"""Spreadsheets are dropped, and asked for sums, rankings and comparisons; strangers learn nothing of them."""

import io
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from openpyxl import Workbook

from local.run_all.api_client import ApiClient, Reply
from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN, SampleUser
from tests.e2e.test_documents import send, until_ended

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

BOTTLINGS = "Orchard,Bottlings\nMarlow,4120\nKessel,2310\nMarlow,880\nTrent,1990\n"
SHEETS = {"Presses 2023": (310, 205), "Presses 2024": (290, 260)}


def workbook() -> bytes:
    book = Workbook()
    book.remove(book.worksheets[0])
    for title, hectolitres in SHEETS.items():
        sheet = book.create_sheet(title)
        for row in [("Press", "Hectolitres"), *zip(("Old", "New"), hectolitres, strict=True)]:
            sheet.append(row)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


@pytest.fixture(scope="module")
def spreadsheets(stack: LocalStack) -> Iterator[list[str]]:
    """Ids of two of Anna's files: one of rows, one of two sheets."""
    headers = {"Authorization": f"Bearer {stack.token(ANNA)}"}
    with httpx.Client(base_url=f"{stack.base_url}/api", headers=headers, timeout=60) as anna:
        files = {"bottlings.csv": BOTTLINGS.encode(), "presses.xlsx": workbook()}
        sent = [send(anna, name, content)["doc_id"] for name, content in files.items()]
        assert [until_ended(anna, doc_id)["status"] for doc_id in sent] == ["ready", "ready"]
        yield sent
        for doc_id in sent:
            anna.delete(f"/documents/{doc_id}")


def ask(stack: LocalStack, question: str, user: SampleUser = ANNA) -> Reply:
    return ApiClient(stack.base_url, stack.token(user)).ask(question)


QUESTIONS: dict[str, list[list[Any]]] = {
    "What is the sum of bottlings by orchard?": [["Marlow", 5000], ["Kessel", 2310], ["Trent", 1990]],
    "Wie hoch ist die Summe der Bottlings?": [[9300]],
    "Top 2 orchards by bottlings?": [["Marlow", 5000], ["Kessel", 2310]],
    "Compare the sum of hectolitres of both sheets": [["Presses 2023", 515], ["Presses 2024", 550]],
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_spreadsheet_is_calculated_with(stack: LocalStack, spreadsheets: list[str], question: str) -> None:
    answer = ask(stack, question)
    (cited,) = answer.citations
    assert (cited["kind"], cited["verified"]) == ("table", False)
    assert sorted(cited["rows"]) == sorted(QUESTIONS[question])
    assert cited["doc_id"] in spreadsheets
    assert "computed)[1]" in answer.text
    assert all(str(row[-1]) in answer.text for row in cited["rows"])


@pytest.mark.attack("access")
def test_a_stranger_learns_neither_a_number_nor_a_name(stack: LocalStack, spreadsheets: list[str]) -> None:
    secrets = ("bottlings.csv", "presses.xlsx", "Marlow", "Kessel", "4120", "Presses 202")
    for question in QUESTIONS:
        seen = ask(stack, question, BEN).everything_seen
        assert not [secret for secret in secrets if secret in seen], question
