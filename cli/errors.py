"""Errors of the command line: messages, hints and exit codes."""

DONE = 0
NOT_ALL_WELL = 1
FAILED = 2
NO_ANSWER = 3
ASKED_BACK = 4
INTERRUPTED = 130  # exit code of a command stopped by Ctrl-C: 128 + SIGINT, as in shells


class CommandError(Exception):
    """An error to report to the user, with hints and an exit code.

    Attributes:
        hints: what to do about it, one sentence each.
        status: HTTP status, if there was a response.
        code: error code of the app (docs/events-and-errors.md); "" for errors of the command line.
        may_repeat: whether the requested wait is over, so that the caller can retry.
    """

    def __init__(self, message: str, *hints: str, status: int | None = None, code: str = "") -> None:
        super().__init__(message)
        self.hints = hints
        self.status = status
        self.code = code
        self.may_repeat = False


class NoConnectionError(CommandError):
    """Error raised if the app can't be reached."""
