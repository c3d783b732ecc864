"""What can go wrong with the local stack; each text is written for the person at the terminal."""


class StackError(RuntimeError):
    """The stack cannot start or go on; the text says why and what to change."""
