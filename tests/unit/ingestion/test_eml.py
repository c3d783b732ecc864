"""Tests for the mail parser with generated messages."""

from email.message import EmailMessage

import pytest

from shared.platform.errors import BadDocumentError
from tests.unit.ingestion.conftest import Parse


def mail(body: str) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"] = "Größe der Pumpe", "Ada <ada@example.org>"
    message["To"] = "bob@example.org"
    message["Date"] = "Fri, 01 Mar 2024 08:30:00 +0100"
    message.set_content(body)
    return message


def test_a_mail_is_its_subject_its_head_and_its_body(parse: Parse) -> None:
    document = parse(mail("Hello Bob,\n\nit is 3 m.\n").as_bytes(), ".eml")
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
    assert document.date == "2024-03-01"


def test_html_comes_before_plain_text_and_attachments_are_named(parse: Parse) -> None:
    message = mail("plain")
    message.add_alternative("<table><tr><th>a<th>b<tr><td>1<td>2</table>", subtype="html")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="Größe.pdf")
    document = parse(message.as_bytes(), ".eml")
    assert document.elements[-1].text == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert document.warnings == ("Attachments were ignored: Größe.pdf. Upload them separately.",)


def test_an_unknown_character_set_and_malformed_headers_do_no_harm(parse: Parse) -> None:
    content = (
        b"From: =?utf-8?b?!!!?= <\r\nDate: never\r\nSubject: Pump\r\n"
        b"Content-Type: text/plain; charset=x-nobody\r\n\r\nBody.\r\n"
    )
    document = parse(content, ".eml")
    assert document.elements[0].text == "Pump"
    assert document.elements[-1].text == "Body."
    assert document.date is None


def test_text_that_is_no_mail_is_refused(parse: Parse) -> None:
    with pytest.raises(BadDocumentError, match="not an e-mail"):
        parse(b"Dear all,\n\nwords.\n", ".eml")
