"""Files from the desktop that are added to a conversation, used in answers, and deleted with the
conversation.
"""

import re
from pathlib import Path

import httpx
import pytest
from azure.storage.blob import ContainerClient
from playwright.sync_api import Browser, expect

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from shared.documents.ids import files_of_thread
from shared.platform.names import DOCUMENTS
from tests.e2e.stack_client import eventually
from tests.e2e.web.browser import answer_text, answered, ask, drop, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
QUESTION = "How much does the quetzal press weigh?"
PASTE = """([name, type, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name, {type}));
  const paste = new ClipboardEvent("paste", {clipboardData: data, bubbles: true, cancelable: true});
  document.getElementById("question").dispatchEvent(paste);
}"""


def client_of(stack: LocalStack) -> httpx.Client:
    headers = {"Authorization": f"Bearer {stack.token(ANNA)}"}
    return httpx.Client(base_url=f"{stack.base_url}/api", headers=headers, timeout=60)


@pytest.mark.parametrize(("width", "locale"), [(1440, "en-GB"), (390, "de-DE")])
def test_a_file_is_asked_about_and_goes_with_its_conversation(
    stack: LocalStack, browser: Browser, tmp_path: Path, width: int, locale: str
) -> None:
    notes, torn, later = tmp_path / "quetzal-notes.md", tmp_path / "torn.pdf", tmp_path / "later.md"
    notes.write_text("# Quetzal notes\n\nThe quetzal press weighs 733 kg.\n")
    torn.write_bytes(b"%PDF-1.7\n1 0 obj")
    later.write_text("# Later\n\nNothing of interest.\n")
    with opened(browser, stack.base_url, width=width, locale=locale) as watched, client_of(stack) as anna:
        page = watched.page
        drop(page, notes, torn)
        files = page.locator(".files li")
        expect(files).to_have_count(2)
        expect(files.filter(has_text="torn.pdf").locator(".danger-text")).not_to_be_empty()
        expect(page.locator(".files progress, .files .dot.running")).to_have_count(0)
        assert watched.axe() == []
        thread_id = re.search(r"thread=([0-9a-f]{32})", page.url)
        assert thread_id is not None
        # The damaged file is removed by keyboard, without a confirmation, because no question was asked yet.
        files.filter(has_text="torn.pdf").get_by_role("button").press("Enter")
        expect(files).to_have_count(1)
        page.evaluate(PASTE, ["image.md", "text/markdown", "# Pasted\n\nNothing else."])
        expect(page.locator(".files li", has_text=re.compile(r"image-\d{6}\.md"))).to_have_count(1)
        ask(page, QUESTION)
        answered(page)
        assert "733 kg" in answer_text(page)
        if width < 500:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate("document.querySelector('.composer-foot').clientHeight") < 60  # a single row
        page.click(".markdown .chip")
        expect(page.locator(".source")).to_contain_text("733 kg")
        assert watched.axe() == []
        page.keyboard.press("Escape")
        listed = anna.get("/documents", params={"limit": 100}).text
        assert "quetzal" not in listed.lower()
        page.reload()
        expect(page.locator(".files li")).to_have_count(2)
        item = page.locator(".files li", has_text="quetzal-notes.md")
        # Answers may quote the file now, so the page asks for confirmation.
        item.get_by_role("button").click()
        dialog = page.locator("dialog[open]")
        expect(dialog).to_contain_text("quetzal-notes.md")
        assert watched.axe() == []
        page.keyboard.press("Escape")
        expect(page.locator(".turn")).to_have_count(1)
        if width < 500:
            page.locator(".topbar button").first.click()
        page.click(".thread.current .menu button")
        page.locator("[role=menuitem]").last.click()
        page.locator("dialog[open] .danger").click()
        expect(page.locator(".welcome")).to_be_visible()
        expect(page.locator(".files li")).to_have_count(0)
        assert anna.get(f"/threads/{thread_id[1]}/files").status_code == 404
        assert eventually(lambda: "quetzal" not in anna.get("/search", params={"q": QUESTION}).text.lower())


def test_removing_a_file_that_was_asked_about_empties_the_conversation(
    stack: LocalStack, browser: Browser, tmp_path: Path
) -> None:
    notes = tmp_path / "quetzal-notes.md"
    notes.write_text("# Quetzal notes\n\nThe quetzal press weighs 733 kg.\n")
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        page.set_input_files(".composer input[type=file]", notes)
        ask(page, QUESTION)  # waits until it has been sent, then until it has been read
        answered(page)
        assert "733 kg" in answer_text(page)
        page.locator(".files li").get_by_role("button").click()
        page.locator("dialog[open]").get_by_role("button", name="Remove").click()
        expect(page.locator(".turn")).to_have_count(0)
        expect(page.locator(".files li")).to_have_count(0)
        page.reload()
        expect(page.locator(".composer")).to_be_visible()
        expect(page.locator(".turn")).to_have_count(0)


def test_an_edited_question_is_asked_where_the_files_are(
    stack: LocalStack, browser: Browser, tmp_path: Path
) -> None:
    notes = tmp_path / "quetzal-notes.md"
    notes.write_text(
        "# Quetzal notes\n\nThe quetzal press weighs 733 kg.\n\nThe quetzal press was built in 1911.\n"
    )
    with opened(browser, stack.base_url) as watched, client_of(stack) as anna:
        page = watched.page
        page.set_input_files(".composer input[type=file]", notes)
        ask(page, QUESTION)
        answered(page)
        address = page.url
        page.click(".turn:last-child .question [aria-label='Edit and ask again']")
        expect(page.locator(".composer .scoped").first).to_contain_text("this conversation has files")
        edited = "In which year was the quetzal press built?"
        ask(page, edited)
        expect(page.locator(".question-text")).to_have_text([edited])
        answered(page)
        assert "1911" in answer_text(page)
        assert page.url == address
        assert watched.axe() == []
        expect(page.locator(".pager")).to_contain_text("2")
        anna.delete(f"/threads/{page.url.partition('thread=')[2][:32]}").raise_for_status()


def test_an_answer_outlives_an_expired_file_and_says_so(
    stack: LocalStack, browser: Browser, tmp_path: Path
) -> None:
    notes = tmp_path / "quetzal-notes.md"
    notes.write_text("# Quetzal notes\n\nThe quetzal press weighs 733 kg.\n")
    with opened(browser, stack.base_url) as watched, client_of(stack) as anna:
        page = watched.page
        page.set_input_files(".composer input[type=file]", notes)
        ask(page, QUESTION)
        answered(page)
        source = page.locator(".sources li", has_text="quetzal-notes.md")
        expect(source.locator(".tag")).to_have_count(0)
        thread_id = page.url.partition("thread=")[2][:32]
        connection = stack.storage_connection_string
        with ContainerClient.from_connection_string(connection, DOCUMENTS) as container:
            for name in container.list_blob_names(name_starts_with=files_of_thread(thread_id)):
                container.delete_blob(name)
        page.reload()
        expect(source.locator(".tag")).to_have_text("file removed")
        assert "733 kg" in answer_text(page)
        assert watched.axe() == []
        anna.delete(f"/threads/{thread_id}").raise_for_status()


def test_more_than_five_files_and_unknown_kinds_are_refused(
    stack: LocalStack, browser: Browser, tmp_path: Path
) -> None:
    many = [tmp_path / f"notes-{number}.md" for number in range(6)]
    for path in many:
        path.write_text("# Notes\n")
    strange = tmp_path / "strange.xyz"
    strange.write_text("x")
    with opened(browser, stack.base_url) as watched, client_of(stack) as anna:
        page = watched.page
        page.set_input_files(".composer input[type=file]", strange)
        expect(page.locator(".files li", has_text="strange.xyz").locator(".danger-text")).to_be_visible()
        page.locator(".files li", has_text="strange.xyz").get_by_role("button").click()
        page.set_input_files(".composer input[type=file]", many)
        expect(page.locator(".notices")).to_contain_text("At most 5 files")
        expect(page.locator(".files li")).to_have_count(5)
        expect(page.locator(".files progress, .files .dot.running")).to_have_count(0)
        thread_id = page.url.partition("thread=")[2]
        anna.delete(f"/threads/{thread_id}").raise_for_status()
