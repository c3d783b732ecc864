"""What the mail parser makes of messages whose content is known."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from shared.ingestion.parsers.eml import parse_eml
from shared.platform.errors import BadDocumentError


def mail(body: str) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = (
        "Größe der Pumpe",
        "Ada <ada@example.org>",
        "bob@example.org",
    )
    message["Date"] = "Fri, 01 Mar 2024 08:30:00 +0100"
    message.set_content(body)
    return message


def written(content: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "a.eml"
    path.write_bytes(content)
    return path


def test_a_mail_is_its_subject_its_head_and_its_body(tmp_path: Path) -> None:
    document = parse_eml(written(mail("Hello Bob,\n\nit is 3 m.\n").as_bytes(), tmp_path))
    assert [(e.kind, e.text) for e in document.elements] == [
        ("heading", "Größe der Pumpe"),
        (
            "paragraph",
            "From: Ada <ada@example.org>\nTo: bob@example.org\nDate: Fri, 01 Mar 2024 08:30:00 +0100",
        ),
        ("paragraph", "Hello Bob,"),
        ("paragraph", "it is 3 m."),
    ]
    assert (document.title, document.author) == ("Größe der Pumpe", "Ada <ada@example.org>")


def test_html_comes_before_plain_text_and_attachments_are_named(tmp_path: Path) -> None:
    message = mail("plain")
    message.add_alternative("<table><tr><th>a<th>b<tr><td>1<td>2</table>", subtype="html")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="Größe.pdf")
    document = parse_eml(written(message.as_bytes(), tmp_path))
    assert document.elements[-1].text == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert document.warnings == ("Attachments were left out: Größe.pdf. Drop them as files of their own.",)


def test_an_unknown_character_set_and_malformed_headers_are_borne(tmp_path: Path) -> None:
    content = (
        b"From: =?utf-8?b?!!!?= <\r\nDate: never\r\nSubject: Pump\r\n"
        b"Content-Type: text/plain; charset=x-nobody\r\n\r\nBody.\r\n"
    )
    document = parse_eml(written(content, tmp_path))
    assert document.elements[0].text == "Pump"
    assert document.elements[-1].text == "Body."


def test_text_that_is_no_mail_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDocumentError, match="not a mail"):
        parse_eml(written(b"Dear all,\n\nwords.\n", tmp_path))
