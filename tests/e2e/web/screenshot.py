"""Takes the picture at the top of the README: `make screenshot`.

It asks some questions on a stack with the samples, and opens the source of the last answer.
"""

import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from local.run_all.demo import ProgressBar, bring_samples
from local.run_all.stack import ROOT, LocalStack
from tests.e2e.stack_fixture import PATIENT, environment_without_model, settings_for
from tests.e2e.web.browser import answered, ask, launched, opened

PICTURE = ROOT / "docs" / "web-page.png"
QUESTIONS = (
    "How many weeks of paid parental leave does Fernhill Pumpworks grant?",
    "What was the revenue in the annual report 2024?",
    "What is the maximum operating pressure of the Heron 400?",
    "Summarise the Heron 400 installation guide.",
)
COLOURS = 128  # keeps the file small; the picture contains no photographs


def take(browser: Browser, base_url: str) -> bytes:
    """Return a PNG of an answer with its source open."""
    with opened(browser, base_url, width=1280) as watched:
        page = watched.page
        for question in QUESTIONS:
            page.click(".sidebar .nav-link >> nth=0")
            ask(page, question)
            answered(page)
        page.click(".markdown .chip >> nth=4")
        page.wait_for_selector(".page-picture .mark")
        page.mouse.move(640, 720)
        page.wait_for_timeout(1000)  # wait until the page has scrolled to the highlighted quotation
        picture = Image.open(io.BytesIO(page.screenshot()))
    reduced = io.BytesIO()
    picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(reduced, "PNG", optimize=True)
    return reduced.getvalue()


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalStack(settings_for(Path(folder)), PATIENT, environment_without_model()) as stack,
        launched() as browser,
    ):
        bring_samples(stack, ProgressBar())
        PICTURE.write_bytes(take(browser, stack.base_url))


if __name__ == "__main__":
    main()
