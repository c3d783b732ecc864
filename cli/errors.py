"""What goes wrong for the user of the command line: words, hints, and an exit code."""

DONE = 0
NOT_ALL_WELL = 1
FAILED = 2
NO_ANSWER = 3
ASKED_BACK = 4
INTERRUPTED = 130  # as shells count: 128 + SIGINT


class CommandError(Exception):
    """Something went wrong that the user can read about.

    Attributes:
        hints: what to do about it, one sentence each.
        status: of the HTTP answer, if there was one.
        code: the app's own (docs/events-and-errors.md); "" when it is not the app that refuses.
        may_repeat: the app asked to wait, and that time is over.
    """

    def __init__(self, message: str, *hints: str, status: int | None = None, code: str = "") -> None:
        super().__init__(message)
        self.hints = hints
        self.status = status
        self.code = code
        self.may_repeat = False


class NoConnectionError(CommandError):
    """Nobody answers."""
