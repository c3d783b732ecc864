"""The access matrix (tests/e2e/access) covers every route and tool, and its oracle distinguishes people."""

from shared.tools.registry import TOOLS
from tests.e2e.access.people import PAPERS, PEOPLE, may_read, readable
from tests.e2e.access.routes import ROUTES, routes_of_the_app
from tests.e2e.access.tools import TOOL_PROBES


def test_no_route_is_without_a_probe() -> None:
    assert set(routes_of_the_app()) == set(ROUTES)


def test_no_tool_that_reads_documents_is_without_a_probe() -> None:
    reading = {name for name, tool in TOOLS.items() if tool.reads_documents}
    assert reading <= TOOL_PROBES.keys() <= TOOLS.keys()


def test_the_oracle_tells_people_apart() -> None:
    """Check that each access list, apart from three special cases, lets exactly one person read."""
    readers = {key: {name for name in PEOPLE if may_read(PEOPLE[name], PAPERS[key])} for key in PAPERS}
    assert readers["public"] == set(PEOPLE)
    assert readers["nobody"] == set()
    assert readers["conversation"] == set()
    assert all(len(readers[key]) == 1 for key in PAPERS if key not in ("public", "nobody", "conversation"))
    assert sum(readable(person) == {"public"} for person in PEOPLE.values()) >= 6
