"""What questions are taken for. None of these sentences stands in evals/routing."""

import pytest

from local.model_server.schemas.classify import intent_of, query_type_of


@pytest.mark.parametrize(
    ("question", "query_type"),
    [
        ("Which safety instructions exist for the paint shop?", "LISTING"),
        ("Could you show me all invoices of the joiner?", "LISTING"),
        ("every checklist we have", "LISTING"),
        ("Is there something on file about mice?", "LISTING"),
        ("Do we have any brochures about insulation?", "LISTING"),
        ("Gibt es Leitfäden zur Einarbeitung?", "LISTING"),
        ("Nenne alle Gutachten zum Hafenbecken", "LISTING"),
        ("What did the works department release in 2018?", "METADATA_SEARCH"),
        ("Show reports newer than May 2021", "METADATA_SEARCH"),
        ("How many pages has the catalogue?", "METADATA_SEARCH"),
        ("Wer hat das Pflichtenheft geschrieben?", "METADATA_SEARCH"),
        ("Wann wurde der Leitfaden zuletzt überarbeitet?", "METADATA_SEARCH"),
        ("Recap the harbour study for me", "DOCUMENT_SUMMARY"),
        ("What is the depot handbook about?", "DOCUMENT_SUMMARY"),
        ("In two sentences, what does the deed say?", "DOCUMENT_SUMMARY"),
        ("Wovon handelt das Lärmgutachten?", "DOCUMENT_SUMMARY"),
        ("Die Kernpunkte des Pachtvertrags", "DOCUMENT_SUMMARY"),
        ("Is the crane at pier 3 stronger than the one at pier 4?", "COMPARISON"),
        ("Which of the two paints dries faster?", "COMPARISON"),
        ("Ist Kork günstiger als Linoleum?", "COMPARISON"),
        ("Worin weichen die beiden Angebote voneinander ab?", "COMPARISON"),
        ("Is the lease longer than five years?", "CONTENT_SEARCH"),
        ("Wie hoch ist die Haftung gegenüber Dritten?", "CONTENT_SEARCH"),
        ("Who has to approve the summary for the board?", "CONTENT_SEARCH"),
        ("What do I have to write into the travel report?", "CONTENT_SEARCH"),
        ("Which papers do I need for a work permit?", "CONTENT_SEARCH"),
        ("Welche Formulare muss ich vor der Reise ausfüllen?", "CONTENT_SEARCH"),
        ("How do I list an item in the catalogue?", "CONTENT_SEARCH"),
        ("Wie vergleiche ich zwei Stände im Archiv?", "CONTENT_SEARCH"),
        ("What are the key points to consider about frost?", "CONTENT_SEARCH"),
    ],
)
def test_each_type_has_its_cues_and_its_borders(question: str, query_type: str) -> None:
    assert query_type_of(question) == query_type


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("thickness of the harbour wall", "fact_lookup"),
        ("Why was the ferry late in June?", "fact_lookup"),
        ("List the side effects of the ointment", "fact_lookup"),
        ("How is the mooring rope checked before use?", "procedural"),
        ("Wie melde ich einen Schaden?", "procedural"),
        ("Wie lange dauert die Prüfung?", "fact_lookup"),
        ("Which paragraph forbids night work?", "evidence_trace"),
        ("Wo ist geregelt, wer die Schlüssel bekommt?", "evidence_trace"),
        ("What concerns are there about the dredging?", "exploratory"),
        ("Welche Folgen hat die Sperrung der Schleuse?", "exploratory"),
        ("Which manuals do we have?", "fact_lookup"),
    ],
)
def test_the_intent_is_what_the_answer_is_wanted_for(question: str, intent: str) -> None:
    assert intent_of(question, query_type_of(question)) == intent


@pytest.mark.parametrize(
    ("misspelt", "query_type"),
    [
        ("comparision of ferry A and ferry B", "COMPARISON"),
        ("Unterscheid zwischen Fähre A und Fähre B", "COMPARISON"),
        ("sumarise the habour study", "DOCUMENT_SUMMARY"),
        ("who worte the harbour study", "METADATA_SEARCH"),
        ("whcih handboks are there?", "LISTING"),
        ("Welche Handbüchr gibt es?", "LISTING"),
    ],
)
def test_misspelt_cues_are_understood(misspelt: str, query_type: str) -> None:
    assert query_type_of(misspelt) == query_type
