"""Errors of the command line: messages, hints and exit codes."""

DONE = 0
NOT_ALL_WELL = 1
FAILED = 2
NO_ANSWER = 3
ASKED_BACK = 4
INTERRUPTED = 130  # as in shells: 128 + SIGINT


class CommandError(Exception):
    """An error to report to the user.

    Attributes:
        hints: what to do about it, one sentence each.
        status: HTTP status, if there was a response.
        code: the app's error code (docs/events-and-errors.md); "" if the error isn't the app's.
        may_repeat: whether the app asked to wait and the time has passed.
    """

    def __init__(self, message: str, *hints: str, status: int | None = None, code: str = "") -> None:
        super().__init__(message)
        self.hints = hints
        self.status = status
        self.code = code
        self.may_repeat = False


class NoConnectionError(CommandError):
    """The app can't be reached."""
