"""Trace context as text: what is one, and the ids of orchestrations that follow from it."""

from datetime import UTC, datetime

import pytest

from shared.platform.tracing import link_below, read_traceparent, write_traceparent

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("header", "flags"),
    [(PARENT, 1), (f"00-{TRACE}-{SPAN}-00", 0), (f"00-{TRACE}-{SPAN}-03", 3), (f" {PARENT} ", 1),
     (f"cc-{TRACE}-{SPAN}-01-what-comes-later", 1), (f"01-{TRACE}-{SPAN}-01", 1)],
)  # fmt: skip
def test_a_trace_context_is_read(header: str, flags: int) -> None:
    assert read_traceparent(header) == (int(TRACE, 16), int(SPAN, 16), flags)


@pytest.mark.parametrize(
    "header",
    [None, "", "00", f"ff-{TRACE}-{SPAN}-01", f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01",
     f"00-{TRACE.upper()}-{SPAN}-01", f"00-{TRACE}-{SPAN}-01-more", f"00-{TRACE}-{SPAN}",
     f"00-{TRACE[1:]}-{SPAN}-01",     f"{PARENT}, {PARENT}", "<script>"],
)  # fmt: skip
def test_what_is_none_is_as_if_it_were_not_there(header: str | None) -> None:
    assert read_traceparent(header) is None
    assert link_below(header or "", "instance", NOW) is None


def test_only_sampled_is_passed_on_of_the_flags() -> None:
    assert write_traceparent(1, 2, 3) == f"00-{1:032x}-{2:016x}-01"
    assert write_traceparent(1, 2, 2).endswith("-00")


def test_an_orchestration_has_the_same_id_in_each_replay_and_another_than_its_siblings() -> None:
    link = link_below(PARENT, "run-1", NOW)
    assert link is not None
    assert link == link_below(PARENT, "run-1", NOW)
    assert link.own.split("-")[1] == TRACE
    sibling = link_below(PARENT, "run-2", NOW)
    elsewhere = link_below(f"00-{TRACE}-{'1' * 16}-01", "run-1", NOW)
    assert sibling is not None
    assert elsewhere is not None
    assert len({SPAN, *(one.own.split("-")[2] for one in (link, sibling, elsewhere))}) == 4


def test_what_nobody_records_is_recorded_nowhere_below() -> None:
    link = link_below(f"00-{TRACE}-{SPAN}-00", "run-1", NOW)
    assert link is not None
    assert link.own.endswith("-00")
