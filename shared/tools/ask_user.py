"""The tool `ask_user`, which asks the user to clarify a question and offers options."""

from typing import Annotated

from pydantic import Field

from shared.tools.base import Parameters, Tool, ToolResult

_Option = Annotated[str, Field(min_length=1, max_length=300, pattern=r"\S")]


class AskUserParameters(Parameters):
    """Arguments of `ask_user`."""

    question: str = Field(description="One short question.", min_length=1, max_length=1000, pattern=r"\S")
    options: tuple[_Option, ...] = Field(
        default=(), description="Answers to choose from; empty = free text.", max_length=10
    )


class AskUser(Tool):
    """Ends the agent's turn with a question to the user, whose next message is the answer."""

    name = "ask_user"
    description = (
        "Ask the user what is meant, with options to choose from. Only when the question can be understood "
        "in ways that lead to different answers, and no search can tell which is meant."
    )
    parameters = AskUserParameters
    documentation = "Ends the turn; the person's next message answers."
    example = '{"question": "Which one?"}'
    reads_documents = False
    waits_for_user = True
    reports_documents = True

    async def _run(self, arguments: AskUserParameters) -> ToolResult:
        options = list(dict.fromkeys(option.strip() for option in arguments.options))
        return {"question": arguments.question.strip(), "options": options}
