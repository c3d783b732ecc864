"""Instructions in documents and web pages that a sub-agent repeats can't link anywhere or pass as proof."""

from xml.etree import ElementTree

import pytest

from shared.answering.children import Child
from shared.answering.findings_text import findings_xml, web_section
from shared.answering.subagent_models import Finding, FoundProof, SubagentState
from shared.answering.views import ENGLISH, view_of
from tests.contract.injection import shown
from tests.contract.injection.hostile_document import PASSAGES
from tests.unit.subagents.delegation_requests import comparison, decided, services_with

pytestmark = [pytest.mark.contract, pytest.mark.attack("orders in documents")]

PAGE = "https://pages.example/p"
HOSTILE = pytest.mark.parametrize("passage", PASSAGES, ids=[passage["id"] for passage in PASSAGES])
OBEYED = ("text", "obeyed")


def state(text: str, *, web: bool) -> SubagentState:
    proof = FoundProof(quote=text, url=PAGE, title=text) if web else FoundProof(quote=text, doc_id="d")
    finding = Finding(kind="web" if web else "claim", text=text, dimension=text, proofs=(proof,))
    return SubagentState(
        child_id="r:s001c0",
        profile="web_verifier" if web else "comparator",
        status="done",
        findings=(finding,),
        uncertainty=(text,),
    )


@HOSTILE
@pytest.mark.parametrize("field", OBEYED)
def test_the_web_section_links_to_the_page_that_was_found_and_shows_words(
    passage: dict[str, str], field: str
) -> None:
    check_words(web_section([state(passage[field], web=True)], ENGLISH), links=[PAGE])


@HOSTILE
@pytest.mark.parametrize("field", OBEYED)
async def test_what_a_sub_agent_is_unsure_of_is_words(passage: dict[str, str], field: str) -> None:
    delegation = (await decided(comparison("a", "b"), services_with())).delegation
    assert delegation is not None
    view = view_of(delegation, Child(delegation.tasks[0], state(passage[field], web=False)), "done")
    for doubt in view.uncertainty:
        check_words(doubt, links=[])


@HOSTILE
@pytest.mark.parametrize("field", OBEYED)
def test_notes_for_the_main_agent_keep_their_form(passage: dict[str, str], field: str) -> None:
    notes = findings_xml([state(passage[field], web=False)])
    if not notes:  # the text is too long for the prompt
        return
    tree = ElementTree.fromstring(notes)
    assert [element.tag for element in tree.iter()] == ["findings", "finding", "statement", "proof", "open"]


def check_words(text: str, links: list[str]) -> None:
    assert shown.links(text) == links
    assert (shown.pictures(text), shown.markup(text), shown.addresses(text)) == ([], [], [])
    assert (shown.sources(text), shown.numbers(text)) == ([], [])
