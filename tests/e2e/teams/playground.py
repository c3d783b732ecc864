"""The Microsoft 365 Agents Playground as one person's Teams client, with its page in the browser."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from local.azurite.server import find_node
from samples.acl import SampleUser
from tests.e2e.stack_client import eventually
from tests.e2e.teams.browser import PICTURES, Browser
from tests.e2e.teams.recorder import Exchange, Recorder

# Same tenant as in the samples, so that documents for the whole organisation are readable.
TENANT = "fernhill"
BOT = "Groundwork"
ROOM = "Project room"
ANSWER_TIMEOUT_S = 180.0  # for a busy machine; 2 to 8 s were measured
BUBBLE = ".fai-OutputCard"
_TEXTBOX = "[role=textbox]"
_LOOPBACK = Path(__file__).parent / "loopback.cjs"
_COMMAND_LINE = ("node_modules", "@microsoft", "m365agentsplayground", "cli.js")
_FILLERS = 5  # the Playground exits if the conversation has fewer other people


class Playground:
    """A Playground process for one person. It is a context manager, which waits on entry until the process
    serves requests.

    Attributes:
        incoming: the requests from the Playground to the app.
        outgoing: the requests from the app to the Playground.
    """

    def __init__(self, user: SampleUser, app_url: str, tools: Path, folder: Path) -> None:
        self.user = user
        self.incoming = Recorder(app_url)
        self.outgoing = Recorder()
        self.url = ""
        self._tools = tools
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        # The file is JSON, which is valid YAML.
        (self._folder / ".m365agentsplayground.yml").write_text(json.dumps(_configuration(self.user)))
        self.incoming.__enter__()
        self.outgoing.__enter__()
        log = self._folder / "playground.log"
        command = [*find_node().node, "--require", str(_LOOPBACK), str(self._tools.joinpath(*_COMMAND_LINE))]
        command += ["start", "--port", "0", "--channel-id", "msteams", "--disable-telemetry"]
        command += ["--app-endpoint", f"{self.incoming.url}/api/messages"]
        command += ["--service-url", f"{self.outgoing.url}/_connector"]
        environment = {**os.environ, "TEAMSAPPTESTER_BROWSER": "none"}
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
        port = eventually(lambda: _port_in(log), "the Playground's port")
        self.url = self.outgoing.target = f"http://127.0.0.1:{port}"
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self.incoming.__exit__()
        self.outgoing.__exit__()

    def activities(self) -> list[dict[str, Any]]:
        """Return the activities that the Playground sent to the app, in order."""
        return [exchange.body for exchange in self.incoming.exchanges]

    def answers(self) -> list[Exchange]:
        """Return the activities that the app sent, each with the response to it."""
        return [one for one in self.outgoing.exchanges if one.method in ("POST", "PUT") and one.body]


@dataclass
class Chat:
    """A person's page in the browser. `page` is its name."""

    browser: Browser
    playground: Playground
    page: str

    @classmethod
    def open(cls, browser: Browser, playground: Playground) -> "Chat":
        """Open a new page with an empty conversation."""
        chat = cls(browser, playground, playground.user.user_id)
        browser.do("open", page=chat.page, url=playground.url, ready=_TEXTBOX, within_s=60)
        return chat

    def say(self, text: str, *, mentioning: bool = False) -> None:
        """Type and send a message."""
        if mentioning:
            self.browser.do("type", page=self.page, selector=_TEXTBOX, text=f"@{BOT[:4]}")
            self.browser.do("click", page=self.page, selector=f'[role=menuitem]:has-text("{BOT}")')
            text = f" {text}"
        self.browser.do("type", page=self.page, selector=_TEXTBOX, text=text)
        self.browser.do("click", page=self.page, selector='[aria-label="Send Message"]')

    def begin_anew(self) -> None:
        """Start a new thread, so that the app doesn't use earlier questions as context."""
        self.say("/new")
        self.see("A new conversation begins.")

    def go_to(self, conversation: str) -> None:
        """Select another conversation in the list on the left."""
        self.browser.do("click", page=self.page, selector=f'text="{conversation}"')

    def press(self, title: str) -> None:
        """Press a button on a card."""
        self.browser.do("click", page=self.page, selector=f'.ac-actionSet button:has-text("{title}")')

    def see(self, text: str, within_s: float = ANSWER_TIMEOUT_S) -> None:
        """Wait until a complete message of the bot contains a text."""
        bubble = f"{BUBBLE}:has-text({json.dumps(text)}):not(:has([role=progressbar]:visible))"
        self.browser.do("wait", page=self.page, selector=bubble, within_s=within_s)

    def rate(self, thumb: str, words: str) -> None:
        """Rate the last message with `Like` or `Dislike` and a comment."""
        self.browser.do("click", page=self.page, selector=f'[aria-label="{thumb}"]')
        self.browser.do("type", page=self.page, selector="textarea", text=words)
        self.browser.do("click", page=self.page, selector='button:has-text("Submit")')
        self.browser.do("click", page=self.page, selector='button:has-text("Close")')
        self.browser.do("gone", page=self.page, selector=".fui-DialogSurface")

    def bubbles(self) -> list[str]:
        """Return the texts of the bot's messages."""
        return [str(text) for text in self.browser.do("texts", page=self.page, selector=BUBBLE)]

    def picture(self, name: str) -> None:
        """Save a screenshot in build/teams for manual inspection."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.browser.do("screenshot", page=self.page, path=str(PICTURES / f"{name}.png"))


def _port_in(log: Path) -> str | None:
    tail = log.read_text(errors="replace").partition("Listening on ")[2]
    return tail.partition("\n")[0] if "\n" in tail else None


def _configuration(user: SampleUser) -> dict[str, Any]:
    others = [_person(f"colleague-{n}", f"Colleague {n}") for n in range(1, _FILLERS + 1)]
    return {
        "version": "0.1.1",
        "tenantId": TENANT,
        "bot": {"id": "groundwork-bot", "name": BOT},
        "currentUser": _person(user.user_id, user.name),
        "users": others,
        "personalChat": {"id": f"chat-of-{user.user_id}"},
        "groupChat": {"id": f"room-of-{user.user_id}", "name": ROOM},
        "team": {
            "id": "team",
            "name": "Pumps",
            "aadGroupId": "00000000-0000-0000-0000-000000000031",
            "channels": [{"id": "announcements", "name": "Announcements"}],
        },
    }


def _person(object_id: str, name: str) -> dict[str, str]:
    given_name, _, surname = name.partition(" ")
    return {
        "id": f"29:{object_id}",
        "name": name,
        "userPrincipleName": f"{object_id}@fernhill.example",
        "aadObjectId": object_id,
        "givenName": given_name,
        "surname": surname,
        "email": f"{object_id}@fernhill.example",
    }
