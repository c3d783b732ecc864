"""No request passes untrimmed."""

import pytest

from shared.access.models import UserContext
from shared.platform.errors import AccessDeniedError
from shared.platform.search import SearchPage, SearchRequest
from shared.retrieval.secured_index import SecuredIndex
from tests.fakes.recording_index import RecordingIndex

ANNA = UserContext(user_id="anna")


async def test_every_request_is_trimmed() -> None:
    index = RecordingIndex(SearchPage(rows=()))
    await SecuredIndex(index, ANNA).search(SearchRequest(text="x"))
    assert index.requests[0].filter == "access_control_list/any(acl: search.in(acl, 'anna|*', '|'))"


async def test_another_filter_cannot_escape_the_trimming() -> None:
    index = RecordingIndex(SearchPage(rows=()))
    await SecuredIndex(index, ANNA).search(SearchRequest(filter="true or doc_id eq 'x'"))
    assert index.requests[0].filter == (
        "(access_control_list/any(acl: search.in(acl, 'anna|*', '|'))) and (true or doc_id eq 'x')"
    )


def test_without_a_user_there_is_no_index() -> None:
    with pytest.raises(AccessDeniedError):
        SecuredIndex(RecordingIndex(SearchPage(rows=())), None)


async def test_anonymous_search_needs_the_test_setting() -> None:
    index = RecordingIndex(SearchPage(rows=()))
    await SecuredIndex(index, None, allow_anonymous=True).search(SearchRequest(filter="a eq 1"))
    assert index.requests[0].filter == "a eq 1"


async def test_a_user_is_trimmed_even_with_the_test_setting() -> None:
    index = RecordingIndex(SearchPage(rows=()))
    await SecuredIndex(index, ANNA, allow_anonymous=True).search(SearchRequest())
    assert index.requests[0].filter is not None
