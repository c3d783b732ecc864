"""What is kept of a request that carried an idempotency key."""

from datetime import datetime

from shared.models.base import Model


class Claim(Model):
    """A key's first request.

    Attributes:
        route: such as `POST /chat`.
        body: digest of what was asked for.
        resource_id: of what it makes; chosen before anything is made.
        content: digest of the file that came with it; None until it has arrived, and without one.
        is_done: the resource was made. One that is not there any more then was deleted since.
        revision: changes with every write; None before the first.
    """

    route: str
    body: str
    resource_id: str
    created_at: datetime
    content: str | None = None
    is_done: bool = False
    revision: str | None = None
