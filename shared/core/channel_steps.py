"""Which step of a reply follows one that cannot be done. Pure."""

from shared.models.channel import ReplyStep


def sorry(step: ReplyStep, code: str) -> ReplyStep:
    """The step that says so; after one that was to say so there is none.

    Args:
        code: of the error, as in docs/errors.md.
    """
    kind = "end" if step.kind == "apologise" else "apologise"
    return step.model_copy(update={"kind": kind, "attempt": 0, "delay_s": 0.0, "error": code})
