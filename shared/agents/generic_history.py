"""What a generic agent remembers of its sessions: questions and answers, in this process, within bounds."""

from collections import OrderedDict

from shared.models.conversing import Message

MAX_SESSIONS = 200  # of one agent, which belongs to one user; the least recently used goes first
MAX_TURNS = 10
MAX_CHARS = 4000  # of one message: 1,300 tokens at most, so ten turns stay within half of the token limit


class SessionHistory:
    """Earlier turns by session id."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, tuple[Message, ...]] = OrderedDict()

    def of(self, session_id: str) -> tuple[Message, ...]:
        """Messages of user and assistant by turns, oldest first; none for a session that is new."""
        return self._sessions.get(session_id, ())

    def remember(self, session_id: str, question: str, answer: str) -> None:
        """Add a turn at the end; the oldest ones make room."""
        turn = (
            Message(role="user", text=question[:MAX_CHARS]),
            Message(role="assistant", text=answer[:MAX_CHARS]),
        )
        self._sessions[session_id] = (*self.of(session_id), *turn)[-2 * MAX_TURNS :]
        self._sessions.move_to_end(session_id)
        while len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
