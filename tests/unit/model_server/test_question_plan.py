"""Planning by rules in two languages: follow-ups, todo lists, documents named. No sentence is of evals/."""

import pytest

from local.model_server.prompt_reader import Turn
from local.model_server.schemas.follow_up import resolve
from local.model_server.schemas.question_plan import keywords, search_queries
from local.model_server.schemas.references import find_references
from local.model_server.schemas.todo import plan_todo


@pytest.mark.parametrize(
    ("earlier", "question", "standalone"),
    [
        ("What is the weight of the X200 pump?", "How do I clean it?", "How do I clean the X200 pump?"),
        ("What is the weight of the X200 pump?", "What is its price?", "What is the X200 pump's price?"),
        ("What is the weight of the X200?", "and the X300?", "What is the weight of the X300?"),
        ("What is the weight of the X200?", "What about the X300?", "What is the weight of the X300?"),
        ("Summarise the travel policy", "Who wrote it?", "Who wrote the travel policy?"),
        ("Was kostet die Pumpe X200?", "und die Pumpe X300?", "Was kostet die Pumpe X300?"),
        ("What is the limit of the X200?", "Who painted the Mona Lisa?", "Who painted the Mona Lisa?"),
        ("What is the limit of the X200?", "Is it true that valves leak?", "Is it true that valves leak?"),
        ("What is the weight of model A?", "And for model B?", "What is the weight of model B?"),
        ("What was the revenue in 2022?", "And 2023?", "What was the revenue in 2023?"),
        ("What is the price of the P-100?", "And in 2024?", "What is the price of the P-100 in 2024?"),
        ("Wie hoch war der Umsatz 2022?", "Und im Jahr 2023?", "Wie hoch war der Umsatz 2023?"),
        ("Wie hoch war der Umsatz?", "und 2023?", "Wie hoch war der Umsatz im Jahr 2023?"),
        (
            "What is the pressure of the Heron 400?",
            "And of the Heron 500?",
            "What is the pressure of the Heron 500?",
        ),
        ("What is the weight of the X200?", "And how heavy is it?", "How heavy is the X200?"),
        (
            "How many weeks of parental leave are granted?",
            "What about sick leave?",
            "How many weeks of sick leave are granted?",
        ),
        (
            "How many weeks are granted for employees?",
            "And for contractors?",
            "How many weeks are granted for contractors?",
        ),
        ("What is granted?", "And for contractors?", "What is granted for contractors?"),
        (
            "Wie oft muss der Filter gewechselt werden?",
            "Und die Pumpe?",
            "Wie oft muss die Pumpe gewechselt werden?",
        ),
        ("Was kostet die Pumpe X200?", "Wie schwer ist sie?", "Wie schwer ist die Pumpe X200?"),
        (
            "What was the revenue according to the annual report?",
            "Who wrote it?",
            "Who wrote the annual report?",
        ),
        ("What is the limit of the X200?", "Why?", "Why (What is the limit of the X200)?"),
    ],
)
def test_follow_ups_are_made_to_stand_alone(earlier: str, question: str, standalone: str) -> None:
    turns = [Turn("user", earlier), Turn("assistant", "So and so.")]
    assert resolve(question, turns) == standalone


def test_without_a_conversation_a_question_stays_as_it_is() -> None:
    assert resolve("How do I clean it?", []) == "How do I clean it?"


def test_the_topic_may_lie_further_back() -> None:
    turns = [
        Turn("user", "What is the weight of the X200?"),
        Turn("assistant", "480 kg."),
        Turn("user", "Why?"),
    ]
    assert resolve("How do I clean it?", turns) == "How do I clean the X200?"


def test_keywords_are_names_numbers_and_quoted_terms() -> None:
    assert keywords('What does Northwind Health say about "balance billing" in 2023?') == [
        "balance billing",
        "2023",
        "Northwind Health",
    ]


def test_each_part_of_a_question_is_searched_for() -> None:
    queries = search_queries("What is the limit and how often is the valve checked?")
    assert queries[1:] == ["What is the limit", "how often is the valve checked"]


def test_the_todo_list_of_a_comparison_depends_on_its_documents() -> None:
    todo = plan_todo(
        "Compare A.pdf with B.pdf", "COMPARISON", ["A.pdf", "B.pdf"], ["Compare A.pdf with B.pdf"]
    )
    assert [item["dependencies"] for item in todo if isinstance(item, dict)] == [[], [], [1, 2]]


@pytest.mark.parametrize(
    ("question", "references"),
    [
        ("Is smoking allowed according to the house rules of conduct?", ["house rules of conduct"]),
        ("Who signed the minutes of the harbour board?", ["minutes of the harbour board"]),
        ("What does our evacuation concept require?", ["evacuation concept"]),
        ("Wer haftet laut Pachtvertrag?", ["Pachtvertrag"]),
        ("Was verlangt unser Brandschutzkonzept?", ["Brandschutzkonzept"]),
        ("Welche Frist nennt das Service Agreement?", ["Service Agreement"]),
        ("Who is thanked in the Geschäftsbericht 2019?", ["Geschäftsbericht 2019"]),
        (
            "Vergleiche die Geschäftsberichte 2018 und 2019",
            ["Geschäftsberichte 2018", "Geschäftsberichte 2019"],
        ),
        ("How do I write a report?", []),
        ("Gibt es einen Vertrag?", []),
        ("What was planned for the harbour?", []),
    ],
)
def test_names_end_where_the_question_goes_on(question: str, references: list[str]) -> None:
    assert find_references(question) == references


@pytest.mark.parametrize(
    ("question", "references"),
    [
        ("What does the ferry polciy say on bikes?", ["ferry polciy"]),
        ("Wer haftet laut Pachtvetrag?", ["Pachtvetrag"]),
        ("whats in the ferry handbok?", ["ferry handbok"]),
    ],
)
def test_a_misspelt_name_is_given_as_it_was_asked(question: str, references: list[str]) -> None:
    assert find_references(question) == references
