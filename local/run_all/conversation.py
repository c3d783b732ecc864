"""Prints an answer while it streams in, and its citations below it."""

from local.run_all.api_client import Reply, StreamEvent

DISCARDING_STATES = ("restarted", "discarded")


class StreamPrinter:
    """Prints tokens as they come. A step that begins anew withdraws what it had written before."""

    def __init__(self) -> None:
        self._is_mid_line = False

    def __call__(self, event: StreamEvent) -> None:
        if event.name == "token":
            text = event.data["text"]
            print(text, end="", flush=True)
            self._is_mid_line = not text.endswith("\n")
        elif event.name == "status" and event.data.get("state") in DISCARDING_STATES and self._is_mid_line:
            print("\n  (the answer is written anew)")
            self._is_mid_line = False

    def finish(self) -> None:
        """End the last line."""
        if self._is_mid_line:
            print(flush=True)


def print_citations(reply: Reply) -> None:
    """One line per citation: number, file, page, whether it is proved, and the quotation."""
    for citation in reply.citations:
        page = f", page {citation['page_number']}" if citation.get("page_number") else ""
        proof = "verified" if citation["verified"] else "NOT VERIFIED"
        print(f'  [{citation["n"]}] {citation["filename"]}{page} ({proof}): "{citation["quote"]}"')
