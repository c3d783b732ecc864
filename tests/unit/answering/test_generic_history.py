"""What a generic agent remembers is bounded in every direction."""

from shared.answering.generic import MAX_CHARS, MAX_SESSIONS, MAX_TURNS, SessionHistory


def test_a_new_session_has_no_history() -> None:
    assert SessionHistory().of("new") == ()


def test_turns_come_in_order_and_the_oldest_make_room() -> None:
    history = SessionHistory()
    for number in range(MAX_TURNS + 3):
        history.remember("s", f"question {number}", f"answer {number}")
    messages = history.of("s")
    assert len(messages) == 2 * MAX_TURNS
    assert (messages[0].role, messages[0].text) == ("user", "question 3")
    assert (messages[-1].role, messages[-1].text) == ("assistant", f"answer {MAX_TURNS + 2}")


def test_long_messages_are_cut() -> None:
    history = SessionHistory()
    history.remember("s", "q" * 100_000, "a" * 100_000)
    assert [len(message.text) for message in history.of("s")] == [MAX_CHARS, MAX_CHARS]


def test_the_session_that_was_not_used_for_longest_goes_first() -> None:
    history = SessionHistory()
    for number in range(MAX_SESSIONS):
        history.remember(str(number), "q", "a")
    history.remember("0", "q", "a")
    history.remember("one more", "q", "a")
    assert history.of("0")
    assert history.of("1") == ()
