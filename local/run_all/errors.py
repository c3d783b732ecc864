"""What can go wrong with the local stack; each text is written for the person at the terminal."""


class StackError(RuntimeError):
    """The stack cannot start or go on; the text says why and what to change."""


class CallRefusedError(StackError):
    """The app answered a call with another status than 200."""

    def __init__(self, call: str, status: int, detail: str) -> None:
        super().__init__(f"{call} answered {status}: {detail}")
        self.status = status
