"""Users' journeys in the web page, from sign-in to the deletion of a document, with the whole stack."""

import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN
from tests.e2e.stack_client import eventually, put_in_workspace
from tests.e2e.test_documents import send, until_ended
from tests.e2e.web.browser import answer_text, answered, ask, drop, opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
FACT = "What is the maximum operating pressure of the Heron 400?"
BETWEEN = "What was the revenue in the annual report?"
RELIEF = "At which pressure does the relief valve V1 open?"


def test_a_quotation_is_shown_on_its_page(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        ask(page, FACT)
        answered(page)
        assert "6.5 bar" in answer_text(page)
        page.click(".markdown .chip")
        mark = page.locator(".page-picture .mark").first
        mark.wait_for()
        box = mark.bounding_box()
        assert box is not None
        assert box["width"] > 50
        # The page's words can be selected on the picture.
        expect(page.locator(".page-words")).to_contain_text("6.5 bar")
        page.click(".source details summary")
        expect(page.locator(".elements mark")).to_have_text(page.inner_text(".source .quote"))
        # The source names the principal that grants access.
        expect(page.locator(".source")).to_contain_text("department")
        page.keyboard.press("Escape")
        expect(page.locator(".markdown .chip")).to_be_focused()
        page.reload()
        expect(page.locator(".markdown")).to_contain_text("6.5 bar")
        expect(page.locator(".markdown .chip").first).to_be_visible()


def test_a_calculated_answer_shows_its_rows_its_sql_and_the_lines_of_the_file(
    stack: LocalStack, browser: Browser
) -> None:
    headers = {"Authorization": f"Bearer {stack.token(ANNA)}"}
    content = "Kelterei;Kelterdatum;Fuder\nAhlen;08.01.2025;412\nBrink;;305\nCarow;17.02.2025;90\n"
    with httpx.Client(base_url=f"{stack.base_url}/api", headers=headers, timeout=60) as anna:
        doc_id = send(anna, "kelterungen.csv", content.encode())["doc_id"]
        assert until_ended(anna, doc_id)["status"] == "ready"
        with opened(browser, stack.base_url, width=320, locale="de-DE") as watched:
            page = watched.page
            ask(page, "Wie hoch ist die Summe der Fuder?")
            answered(page)
            assert "807" in answer_text(page)
            page.click(".markdown .chip")
            expect(page.locator(".source .quote td").last).to_have_text("807")
            expect(page.locator(".source pre")).to_contain_text("SUM(")
            # All lines of the sum are marked, including a line without a date. Dates are formatted as in the
            # file.
            marks = page.locator(".elements tr", has=page.locator("mark"))
            expect(marks).to_have_count(3)
            expect(marks.first).to_contain_text("08.01.2025")
            assert watched.axe() == []
        anna.delete(f"/documents/{doc_id}")


def test_a_question_back_waits_for_another_browser(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        ask(watched.page, BETWEEN)
        watched.page.wait_for_selector(".clarification")
        address = watched.page.url
    with opened(browser, stack.base_url, path=address.removeprefix(stack.base_url)) as watched:
        watched.page.wait_for_selector(".clarification")
        watched.page.wait_for_selector(".thread.current .dot.waiting")
        watched.page.press(".scroller", "2")
        answered(watched.page)
        assert "53.7" in answer_text(watched.page)


def test_a_file_becomes_a_document_that_is_corrected_and_deleted(
    stack: LocalStack, browser: Browser, tmp_path: Path
) -> None:
    good, strange = tmp_path / "zeta-notes.md", tmp_path / "strange.xyz"
    good.write_text("# Zeta notes\n\nThe zeta press weighs 812 kg.\n")
    strange.write_text("x")
    with opened(browser, stack.base_url, path="/?view=documents") as watched:
        page = watched.page
        page.set_input_files("input[type=file] >> nth=0", [good, strange])
        page.wait_for_selector("[data-state=failed] >> text=.xyz")
        page.click("table.documents a >> text=Zeta notes")
        page.click(".metadata >> text=Edit")
        page.fill(".metadata input >> nth=0", "Zeta press, weights")
        # Another client corrects the same document meanwhile.
        doc_id = page.url.rpartition("doc=")[2]
        headers = {"Authorization": f"Bearer {stack.token(ANNA)}"}
        url = f"{stack.base_url}/api/documents/{doc_id}"
        assert httpx.patch(url, json={"author": "B. Okafor"}, headers=headers).status_code == 200
        page.click(".metadata button")
        page.wait_for_selector(".metadata [role=alert]")
        expect(page.locator(".metadata")).to_contain_text("B. Okafor")
        page.click(".metadata button")
        page.wait_for_selector("table.documents a >> text=Zeta press, weights")
        page.click("text=Ask about this")
        page.wait_for_selector(".scoped >> text=zeta-notes.md")
        ask(page, "What does the zeta press weigh?")
        answered(page)
        assert "812 kg" in answer_text(page)
        page.goto(f"{stack.base_url}/?view=documents&doc={doc_id}")
        page.click(".button-row >> text=Delete")
        page.click("dialog >> text=Delete >> nth=-1")
        page.wait_for_selector("table.documents")
        assert eventually(lambda: httpx.get(url, headers=headers).status_code == 404)


def test_a_folder_is_dropped_and_what_is_large_goes_to_the_storage(
    stack: LocalStack, browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "drop" / "inner").mkdir(parents=True)
    (tmp_path / "drop" / "inner" / "omega-notes.md").write_text(
        "# Omega notes\n\nThe omega press is green.\n"
    )
    (tmp_path / "drop" / "omega-scan.png").write_bytes(
        bytes(5 * 2**20)
    )  # not an image, and larger than MAX_UPLOAD_BYTES
    with opened(browser, stack.base_url, path="/?view=documents") as watched:
        page = watched.page
        drop(page, tmp_path / "drop")
        expect(page.locator(".uploads [data-state=sent]")).to_have_count(2)
        page.click("table.documents a >> text=Omega notes")
        doc_id = page.url.rpartition("doc=")[2]
        headers = {"Authorization": f"Bearer {stack.token(ANNA)}"}
        detail = httpx.get(f"{stack.base_url}/api/documents/{doc_id}", headers=headers).json()
        assert detail["folder"] == "drop/inner"
        page.keyboard.press("Escape")
        page.click(".facets button >> text=Failed")
        row = page.locator("table.documents tr", has_text="omega-scan.png")
        expect(row.locator(".danger-text")).not_to_be_empty()
        expect(page.locator("table.documents")).not_to_contain_text("Omega notes")


def test_an_earlier_question_is_asked_otherwise_in_a_thread_of_its_own(
    stack: LocalStack, browser: Browser
) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        for question in (FACT, RELIEF, "What is the name of the founder's dog?"):
            ask(page, question)
            expect(page.locator(".turn:last-child .question-text")).to_have_text(question)
            answered(page)
        before = page.url
        page.click(".turn:nth-child(2) .question [aria-label='Edit and ask again']")
        expect(page.locator(".composer .scoped")).to_contain_text("new thread")
        edited = "What does the Heron 400 weigh without liquid?"
        ask(page, edited)
        expect(page.locator(".turn")).to_have_count(2)
        expect(page.locator(".turn:last-child .question-text")).to_have_text(edited)
        answered(page)
        assert page.url != before
        page.reload()
        expect(page.locator(".question-text")).to_have_text([FACT, edited])
        expect(page.locator(".turn:first-child .markdown")).to_contain_text("6.5 bar")
        page.goto(before)
        expect(page.locator(".turn")).to_have_count(3)


def test_a_document_is_shared_with_a_group_by_name(
    stack: LocalStack, browser: Browser, tmp_path: Path
) -> None:
    note = tmp_path / "sigma-notes.md"
    note.write_text("# Sigma notes\n\nThe sigma press is blue.\n")
    with opened(browser, stack.base_url, path="/?view=documents") as watched:
        page = watched.page
        page.click(".upload >> text=Change")
        page.fill("dialog input", "ben o")
        page.click(".picker-list li >> text=Ben Okafor")
        page.click("dialog .picker >> text=My department (engineering)")
        page.click("dialog .readers [aria-label='Remove: Ben Okafor']")
        assert watched.axe() == []
        page.click("dialog >> text=Done")
        expect(page.locator(".upload")).to_contain_text("You, My department (engineering)")
        page.set_input_files("input[type=file] >> nth=0", note)
        page.click("table.documents a >> text=Sigma notes")
        # Wait until the panel is complete, because it would otherwise discard typed text.
        page.wait_for_selector(".metadata")
        readers = page.locator(".access .readers")
        expect(readers).to_contain_text("My department (engineering)")
        # The user picks a colleague by name, and the API receives the id.
        page.fill(".access input", "ben")
        page.press(".access input", "Enter")  # selects the only match
        expect(readers).to_contain_text("Ben Okafor")
        expect(readers.locator("li", has_text="Ben Okafor")).to_contain_text("by name")
        expect(readers.locator("li", has_text="engineering")).to_contain_text(
            "as a member of this department"
        )
        doc_id = page.url.rpartition("doc=")[2]
        headers = {"Authorization": f"Bearer {stack.token(ANNA)}"}
        url = f"{stack.base_url}/api/documents/{doc_id}"
        # Another client changes the title meanwhile. The new access list must be accepted nevertheless.
        title = {"title": "Sigma press notes"}
        assert httpx.patch(url, headers=headers, json=title).status_code == 200
        page.click(".picker >> text=safety-committee")
        expect(readers).to_contain_text("safety-committee")
        page.click(".access [aria-label='Remove: My department (engineering)']")
        expect(readers).not_to_contain_text("engineering")
        page.fill(".access input", "no-such-group")
        page.press(".access input", "Enter")
        expect(page.locator(".access [role=alert]")).to_contain_text("No known person or group")
        expect(readers).not_to_contain_text("no-such-group")
        # A principal can be added by keyboard alone, and is not listed twice.
        page.fill(".access input", "hr")
        page.wait_for_selector(".picker-list li")
        page.press(".access input", "ArrowDown")
        page.press(".access input", "Enter")
        expect(readers).to_contain_text("hr")
        assert watched.axe() == []
        acl = httpx.get(url, headers=headers).json()["acl"]
        assert set(acl) == {"anna", "ben", "safety-committee", "hr"}
        as_ben = {"Authorization": f"Bearer {stack.token(BEN)}"}
        assert httpx.get(url, headers=as_ben).status_code == 200
        refused = httpx.put(f"{url}/access", headers=headers, json={"acl": ["Ben Okafer"]})
        assert refused.status_code == 400
        assert "Did you mean Ben Okafor (ben)?" in refused.text
        assert httpx.delete(url, headers=headers).status_code < 300


def test_a_recording_is_cited_at_its_moment(stack: LocalStack, browser: Browser, tmp_path: Path) -> None:
    talk = tmp_path / "omicron-talk.vtt"
    talk.write_text("WEBVTT\n\n00:01:10.000 --> 00:01:16.000\nThe omicron valve is made of brass.\n")
    with opened(browser, stack.base_url, path="/?view=documents") as watched:
        page = watched.page
        page.set_input_files("input[type=file] >> nth=0", talk)
        page.click("table.documents a >> text=omicron-talk.vtt")
        page.wait_for_selector(".metadata")
        doc_id = page.url.rpartition("doc=")[2]
        page.click("text=Ask about this")
        page.wait_for_selector(".scoped >> text=omicron-talk.vtt")
        ask(page, "What is the omicron valve made of?")
        answered(page)
        assert "Source:" not in answer_text(page)
        expect(page.locator(".markdown .chip").first).to_have_attribute("aria-label", re.compile("1:10"))
        page.click(".markdown .chip >> nth=0")
        expect(page.locator(".elements mark")).to_contain_text("omicron valve is made of brass")
    headers = {"Authorization": f"Bearer {stack.token(ANNA)}"}
    assert httpx.delete(f"{stack.base_url}/api/documents/{doc_id}", headers=headers).status_code < 300


def test_threads_are_found_renamed_and_deleted(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url, "ben") as watched:
        page = watched.page
        ask(page, "How many weeks of paid parental leave does Fernhill Pumpworks grant?")
        answered(page)
        page.click(".thread.current .menu button")
        page.click("[role=menuitem] >> text=Rename")
        page.fill("dialog input", "Parental leave")
        page.click("dialog >> text=Save")
        # Typing works only after the dialog has closed. The previous title contains the same words.
        expect(page.locator("dialog")).to_have_count(0)
        renamed = page.locator(".thread.current").get_by_text("Parental leave", exact=True)
        expect(renamed).to_be_visible()
        page.fill("#thread-search", "no such words")
        expect(page.locator(".sidebar")).to_contain_text("Nothing found.")
        page.fill("#thread-search", "leave parental")
        expect(renamed).to_be_visible()
        page.fill("#thread-search", "")
        page.click(".thread.current .menu button")
        page.click("[role=menuitem] >> text=Delete")
        page.click("dialog >> text=Delete >> nth=-1")
        expect(page.locator(".welcome")).to_be_visible()
        expect(page.locator(".thread").get_by_text("Parental leave", exact=True)).to_have_count(0)


def test_an_answer_is_rated_and_told_to_screen_readers(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        ask(page, RELIEF)
        answered(page)
        expect(page.locator("[role=status]")).to_contain_text("complete")
        page.click("[aria-label='Not a good answer']")
        page.click("dialog >> text=Out of date")
        page.click("dialog button[type=submit]")
        expect(page.locator("dialog")).to_have_count(0)
        expect(page.locator("[aria-label='Not a good answer']")).to_have_attribute("aria-pressed", "true")
        page.click("[aria-label='Good answer']")
        expect(page.locator("[aria-label='Good answer']")).to_have_attribute("aria-pressed", "true")


def test_a_file_that_failed_says_why_in_the_readers_language(
    stack: LocalStack, browser: Browser, tmp_path: Path
) -> None:
    damaged = tmp_path / "eta-damaged.pdf"
    damaged.write_bytes(b"%PDF-1.7\n1 0 obj")
    with opened(browser, stack.base_url, path="/?view=documents", locale="de-DE") as watched:
        watched.page.set_input_files("input[type=file] >> nth=0", [damaged])
        watched.page.click(".failed-files summary")
        for place in (".uploads li", ".failed-files li"):
            row = watched.page.locator(place, has_text="eta-damaged.pdf")
            expect(row).to_contain_text("Die Datei ist beschädigt")


def test_memory_is_switched_off_and_on_again(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url, "admin", path="/?view=account") as watched:
        page = watched.page
        switch = page.get_by_label("Remember my questions")
        expect(switch).to_be_checked()
        with page.expect_response(lambda answer: answer.request.method == "PUT"):
            switch.uncheck()
        page.reload()
        expect(switch).not_to_be_checked()
        with page.expect_response(lambda answer: answer.request.method == "PUT"):
            switch.check()


def test_a_file_that_an_agent_wrote_is_taken_away_and_deleted(stack: LocalStack, browser: Browser) -> None:
    put_in_workspace(stack, ANNA.user_id, "limits (2).md")
    with opened(browser, stack.base_url, path="/?view=account") as watched:
        page = watched.page
        with page.expect_download() as download_info:
            page.click("text=limits (2).md")
        assert download_info.value.path().read_bytes() == b"mine"
        page.get_by_role("button", name="Delete limits (2).md").click()
        expect(page.get_by_text("limits (2).md")).to_have_count(0)


def test_a_session_that_ends_keeps_what_was_written(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        page = watched.page
        page.context.clear_cookies()
        ask(page, FACT)
        page.click(".banner a")
        page.click("button[value=anna]")
        expect(page.locator("#question")).to_have_value(FACT)


def test_who_may_read_nothing_is_told_what_is_missing(stack: LocalStack, browser: Browser) -> None:
    with opened(browser, stack.base_url) as watched:
        ask(watched.page, "What is the name of the founder's dog?")
        answered(watched.page)
        expect(watched.page.locator(".gap")).to_contain_text("Not in your documents")
