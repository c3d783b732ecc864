"""A committed answer becomes a message of a chat channel."""

from typing import Any

import pytest

from shared.evidence.models import AnswerFigure, Citation
from shared.runs.models import RunAnswer
from shared.teams.models import ShownCitation, ShownFigure
from shared.teams.outgoing import MAX_ABSTRACT_CHARS, reply_of

APP = "https://app.example"
_PATH = f"/api/documents/d1/figures/{'a' * 64}.png"
_TABLE = "| a | b |\n|---|---|\n| x | y |"
_SIGNED = "https://store.example/figures/d1/a.png?sig=s"


def _cited(**changes: Any) -> Citation:
    usual: dict[str, Any] = {
        "n": 1,
        "doc_id": "d1",
        "block_id": "b1",
        "filename": "pump.pdf",
        "page_number": 3,
        "quote": "The valve\n opens at 6.5 bar.",
        "verified": True,
        "url": "/api/documents/d1/pages/3?run=r&n=1#cited",
    }
    return Citation(**(usual | changes))


def _answer(**changes: Any) -> RunAnswer:
    figure = AnswerFigure(
        block_id="b2",
        doc_id="d1",
        filename="pump.pdf",
        page_number=4,
        caption="The valve, [cut] open",
        path=_PATH,
        image_url=_SIGNED,
    )
    usual: dict[str, Any] = {
        "run_id": "r",
        "text": f"At 6.5 bar (Source: pump.pdf, S. 3)[1].\n\n![The valve]({_PATH})\n\n{_TABLE}",
        "citations": (_cited(),),
        "figures": (figure,),
    }
    return RunAnswer(**(usual | changes))


def test_an_answer_is_told_with_its_sources_its_picture_and_its_table() -> None:
    reply = reply_of(_answer(), language="en", public_address=APP)
    assert reply.text == "At 6.5 bar (Source: pump.pdf, S. 3)[1].\n\n*The valve*\n\n- **x** · b: y"
    assert reply.citations == (
        ShownCitation(
            n=1,
            name="pump.pdf, p. 3",
            abstract="The valve opens at 6.5 bar.",
            url=f"{APP}/api/documents/d1/pages/3?run=r&n=1#cited",
        ),
    )
    assert reply.figures == (
        ShownFigure(
            caption="The valve, cut open (pump.pdf, p. 4)",
            alt="The valve, cut open (pump.pdf, p. 4)",
            image_url=_SIGNED,
            page_url=f"{APP}/api/documents/d1/pages/4",
        ),
    )
    assert reply.tables[0].rows == (("x", "y"),)
    assert reply.can_be_rated
    assert reply.is_generated


def test_a_caption_that_stands_in_the_text_is_not_told_again() -> None:
    long = "A drawing of the valve as it stands in the hall of Ludlow, with all of its parts"
    text = f"![{long}]({_PATH})\n\n![Pump]({_PATH})"
    first, second = (_answer().figures[0].model_copy(update={"caption": one}) for one in (long, "Pump"))
    alone = reply_of(_answer(text=text, figures=(first,)), language="en", public_address=APP).figures[0]
    assert (alone.caption, alone.alt) == ("pump.pdf, p. 4", f"{long} (pump.pdf, p. 4)")
    several = reply_of(_answer(text=text, figures=(first, second)), language="en", public_address=APP).figures
    assert [figure.caption for figure in several] == [
        "A drawing of the valve as it stands in the hall of Ludlow, … (pump.pdf, p. 4)",
        "Pump (pump.pdf, p. 4)",
    ]


def test_names_and_quotations_do_not_turn_the_direction_of_reading() -> None:
    cited = _cited(filename="a\u202efdp.exe", quote="It\u202e opens.")
    reply = reply_of(_answer(citations=(cited,)), language="en", public_address=APP)
    assert (reply.citations[0].name, reply.citations[0].abstract) == ("afdp.exe, p. 3", "It opens.")


def test_a_signed_address_stands_nowhere_but_in_the_picture() -> None:
    reply = reply_of(_answer(), language="en", public_address=APP)
    assert reply.model_dump_json().count("sig=") == 1


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "pump.pdf, S. 3"),
        ({"page_number": None}, "pump.pdf"),
        ({"page_number": None, "start_seconds": 83.0}, "pump.pdf, 01:23"),
        ({"verified": False}, "pump.pdf, S. 3, Abbildung"),
    ],
)
def test_a_source_is_named_in_the_language_of_the_reader(changes: dict[str, Any], name: str) -> None:
    reply = reply_of(_answer(citations=(_cited(**changes),)), language="de", public_address=APP)
    assert reply.citations[0].name == name


@pytest.mark.parametrize(
    ("url", "address", "shown"),
    [
        ("/api/documents/d1/pages/3", None, ""),  # nobody knows the app's own address
        ("https://video.example/talk#t=83", None, "https://video.example/talk#t=83"),
        ("javascript:alert(1)", APP, ""),
        ("http://video.example/talk", APP, ""),
    ],
)
def test_links_lead_to_the_app_or_over_https(url: str, address: str | None, shown: str) -> None:
    reply = reply_of(_answer(citations=(_cited(url=url),)), language="en", public_address=address)
    assert reply.citations[0].url == shown


def test_a_long_quotation_is_cut_at_a_word() -> None:
    reply = reply_of(
        _answer(citations=(_cited(quote="word " * 300), _cited(n=2, quote="x" * 900))),
        language="en",
        public_address=APP,
    )
    first, second = (cited.abstract for cited in reply.citations)
    assert first.endswith("word …")
    assert all(len(text) <= MAX_ABSTRACT_CHARS for text in (first, second))


def test_a_picture_that_could_not_be_signed_is_left_out() -> None:
    figure = _answer().figures[0].model_copy(update={"image_url": None})
    assert reply_of(_answer(figures=(figure,)), language="en", public_address=APP).figures == ()
