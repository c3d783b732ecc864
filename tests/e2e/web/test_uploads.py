"""Feedback about uploaded files: the outcome for each file, and how to fix a failure."""

import re
from pathlib import Path

import httpx
import pytest
from fpdf import FPDF
from playwright.sync_api import Browser, expect

from local.run_all.stack import LocalStack
from samples.acl import ANNA
from tests.e2e.stack_client import client_of
from tests.e2e.web.browser import opened

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
PAGE = "/?view=documents"


def _partly_damaged(path: Path) -> None:
    """Write a PDF with two readable pages and a third page whose page object is missing."""
    pdf = FPDF()
    pdf.set_font("Helvetica", size=12)
    for text in ("The theta press weighs 431 kg.", "The theta press is oiled in May.", "Lost."):
        pdf.add_page()
        pdf.cell(text=text)
    content = bytes(pdf.output())
    kids = re.search(rb"/Kids\s*\[(.*?)\]", content, re.DOTALL)
    assert kids is not None
    last = re.findall(rb"(\d+) 0 R", kids[1])[-1]
    path.write_bytes(content.replace(b"\n%b 0 obj" % last, b"\n%b 0 obx" % last))


def _mixed(folder: Path) -> list[Path]:
    names = ("theta.pdf", "blank.txt", "torn.pdf", "old.doc", "many.zip", "film.mp4", "README")
    files = {name: folder / name for name in names}
    _partly_damaged(files["theta.pdf"])
    files["blank.txt"].write_text("\n \n")
    files["torn.pdf"].write_bytes(b"%PDF-1.7\n1 0 obj")
    files["old.doc"].write_bytes(b"x")
    for name in ("many.zip", "film.mp4", "README"):
        files[name].write_bytes(b"x")
    return list(files.values())


def _delete_all(stack: LocalStack, names: set[str]) -> None:
    headers = {"Authorization": f"Bearer {stack.token(ANNA)}"}
    listed = httpx.get(f"{stack.base_url}/api/documents", headers=headers).json()["documents"]
    for document in listed:
        if document["filename"] in names:
            httpx.delete(f"{stack.base_url}/api/documents/{document['doc_id']}", headers=headers)


def _shared_with(stack: LocalStack, name: str) -> dict[str, list[str]]:
    """Return the access lists of Anna's documents whose names start with `name`, by filename."""
    headers = {"Authorization": f"Bearer {stack.token(ANNA)}"}
    listed = httpx.get(f"{stack.base_url}/api/documents?limit=100", headers=headers).json()["documents"]
    return {one["filename"]: one["acl"] for one in listed if one["filename"].startswith(name)}


def test_a_file_that_would_replace_a_shared_document_asks_first(
    stack: LocalStack, browser: Browser, tmp_path: Path
) -> None:
    file = tmp_path / "kappa valve.md"
    with opened(browser, stack.base_url, path=PAGE) as watched:
        page = watched.page
        file.write_text("# Kappa valve\n\nThe kappa valve opens at 3 bar.")
        page.click(".upload .inline-field .link-button")
        dialog = page.get_by_role("dialog")
        field = dialog.get_by_role("combobox")
        expect(field).to_be_focused()
        # A wide grant needs a confirmation. Done accepts the text in the field.
        dialog.get_by_role("button", name="+ Everyone").click()
        confirmation = dialog.get_by_role("alert")
        expect(confirmation).to_contain_text("Everyone who may sign in will be able to read it.")
        assert watched.axe() == []
        confirmation.get_by_role("button", name="Cancel").click()
        expect(dialog.locator(".readers li")).to_have_count(0)
        field.fill("Ben")
        dialog.get_by_role("button", name="Done").click()
        expect(dialog).to_have_count(0)
        page.set_input_files("input[type=file] >> nth=0", file)
        summary = page.locator(".uploads [role=status]")
        expect(summary).to_have_text("1 of 1 ready")
        # Finished uploads are collapsed into one line.
        expect(page.locator(".uploads > ul > li")).to_have_count(0)
        readers = _shared_with(stack, "kappa")["kappa valve.md"]
        assert len(readers) == 2

        file.write_text("# Kappa valve\n\nThe kappa valve opens at 4 bar.")
        page.reload()
        page.set_input_files("input[type=file] >> nth=0", file)
        row = page.locator(".uploads > ul > li")
        shared = "It is already in this folder. It is shared with Ben"
        expect(row).to_contain_text(shared)
        listed = page.locator("table.documents tbody tr", has_text="kappa valve.md")
        for document_type in ("blueprint", "sketch"):  # the second is listed only after an event
            _correct_type(stack, "kappa valve.md", document_type)
            expect(listed).to_contain_text(document_type)
        expect(row).to_contain_text(shared)  # the event has no access list
        assert watched.axe() == []
        row.get_by_role("button", name="Keep both").click()
        expect(summary).to_have_text("1 of 1 ready")
        page.set_input_files("input[type=file] >> nth=0", file)
        row.get_by_role("button", name="Keep both").click()
        expect(summary).to_have_text("2 of 2 ready")
        page.set_input_files("input[type=file] >> nth=0", file)
        row.get_by_role("button", name="Replace it").click()
        expect(summary).to_have_text("3 of 3 ready")
    readers_by_filename = _shared_with(stack, "kappa")
    assert sorted(readers_by_filename) == ["kappa valve (2).md", "kappa valve (3).md", "kappa valve.md"]
    assert readers_by_filename["kappa valve.md"] == readers
    assert len(readers_by_filename["kappa valve (2).md"]) == 1
    _delete_all(stack, set(readers_by_filename))


def _correct_type(stack: LocalStack, filename: str, document_type: str) -> None:
    with client_of(stack, ANNA) as anna:
        listed = anna.get("/documents", params={"limit": 100}).json()["documents"]
        doc_id = next(document["doc_id"] for document in listed if document["filename"] == filename)
        anna.patch(f"/documents/{doc_id}", json={"document_type": document_type}).raise_for_status()


@pytest.mark.parametrize("width", [1440, pytest.param(390, marks=pytest.mark.nightly)])
def test_each_file_tells_what_became_of_it(
    stack: LocalStack, browser: Browser, tmp_path: Path, width: int
) -> None:
    with opened(browser, stack.base_url, path=PAGE, width=width) as watched:
        page = watched.page
        page.wait_for_selector(".upload")
        page.set_input_files("input[type=file] >> nth=0", _mixed(tmp_path))
        summary = page.locator(".uploads [role=status]")
        expect(summary).to_contain_text("1 of 7 ready · one can’t be searched · 5 failed")
        for name, words in {
            "old.doc": "Save the file as .docx",
            "many.zip": "Unpack the file",
            "film.mp4": "Save the file in one of these formats: csv, docm, docx",
            "README": "The file name has no extension",
            "torn.pdf": "damaged",
            "theta.pdf": "Ready, 1 of 3 pages unreadable",
            "blank.txt": "Not searchable: it contains no text",
        }.items():
            expect(page.locator(".uploads li", has_text=name)).to_contain_text(words)
        expect(page.locator(".uploads li").first).to_have_attribute("data-phase", "failed")
        assert watched.axe() == []
        # The list shows the same status as the upload, before and after a reload.
        status = page.locator("table.documents tr", has_text="blank.txt").locator(".state")
        expect(status).to_have_text("Not searchable: it contains no text")
        page.reload()
        rows = page.locator("table.documents tr")
        expect(rows.filter(has_text="theta.pdf")).to_contain_text("Ready, 1 of 3 pages unreadable")
        expect(rows.filter(has_text="blank.txt")).to_contain_text("Not searchable")
        expect(rows.filter(has_text="torn.pdf")).to_have_count(0)
        page.click(".failed-files summary")
        failed = page.locator(".failed-files li", has_text="torn.pdf")
        box = failed.bounding_box()
        assert box is not None
        assert box["height"] < 60  # one line
        page.click("table.documents a >> text=theta.pdf")
        expect(page.locator(".source")).to_contain_text("Run text recognition (OCR)")
        page.keyboard.press("Escape")
        failed.get_by_role("button", name="Delete torn.pdf").click()
        expect(failed).to_have_count(0)
        assert watched.axe() == []
    _delete_all(stack, {"theta.pdf", "blank.txt"})
