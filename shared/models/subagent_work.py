"""What a sub-agent keeps between its turns beside its state: its transcript. Read by no one else."""

from shared.models.base import Model
from shared.models.conversing import Message
from shared.models.tool_steps import PlannedCall
from shared.models.web import WebHit


class ChildTranscript(Model):
    """What was said and done so far, behind the system prompt and the task.

    Attributes:
        opening_count: of the state's first hits, those that the task's message shows.
        is_covered: they are all that its documents hold: nothing more can be found.
        messages: calls of tools and their results, in order.
        planned: calls of the newest turn whose results are not there yet.
        results: of its calls that are done already: a turn that is taken again does not make them again.
        made: signatures of calls that were carried out.
        pages: of the web, in the order found.
    """

    opening_count: int = 0
    is_covered: bool = False
    messages: tuple[Message, ...] = ()
    planned: tuple[PlannedCall, ...] = ()
    results: tuple[Message, ...] = ()
    made: tuple[str, ...] = ()
    pages: tuple[WebHit, ...] = ()
