"""The documents of the Teams tests. Each person has separate ones, because people in the Playground have no
groups.
"""

from pathlib import Path

from local.run_all.stack import LocalStack
from samples.acl import ANNA, BEN
from tests.e2e.stack_client import drop, wait_until_ended
from tests.unit.ingestion.figure_files import FigureMaker

KILN = "The kiln in Ludlow burns at 1180 degrees."
KILN_QUESTION = "At how many degrees does the kiln in Ludlow burn?"
ROTA_QUESTION = "Who keeps the night rota of the hall in Ludlow?"
ROTA_SAYS = {ANNA.user_id: "Mara Lind", BEN.user_id: "Ines Falk"}
PRESS_QUESTION = "What was the total output according to the press report?"
BARRELS_QUESTION = "What is the sum of barrels by orchard?"
BARRELS = b"Orchard,Barrels\nMarlow,4120\nKessel,2310\nMarlow,880\n"
PRESS_SAYS = {2023: "4120 litres", 2024: "5370 litres"}


def bring_papers(stack: LocalStack, folder: Path) -> None:
    """Upload all documents, and wait until they are ready."""
    papers = {"works.pdf": (ANNA, _works(folder)), "barrels.csv": (ANNA, BARRELS)}
    for owner in (ANNA, BEN):
        sentence = f"The night rota of the hall in Ludlow is kept by {ROTA_SAYS[owner.user_id]}."
        papers[f"rota-{owner.user_id}.md"] = owner, _page("Night rota", sentence)
    for year, litres in PRESS_SAYS.items():
        sentence = f"The total output of the cider press in Ludlow was {litres} in {year}."
        papers[f"press-report-{year}.md"] = ANNA, _page(f"Press report {year}", sentence)
    for name, (owner, content) in papers.items():
        drop(stack, name, content, owner.user_id)
    for name, (owner, _) in papers.items():
        assert wait_until_ended(stack, name, owner)["status"] == "ready"


def agents_of_anna(folder: Path) -> Path:
    """Return a folder with the sample agents, in which the agent of a department belongs to Anna."""
    for path in sorted(Path("samples/agents").glob("*.agent.md")):
        text = path.read_text(encoding="utf-8").replace("[engineering]", f"[{ANNA.user_id}]")
        (folder / path.name).write_text(text, encoding="utf-8")
    return folder


def _page(title: str, text: str) -> bytes:
    return f"# {title}\n\n{text}\n".encode()


def _works(folder: Path) -> bytes:
    maker = FigureMaker()
    maker.page()
    maker.heading("The kiln")
    maker.paragraph(f"{KILN} It is looked after by two people, who note what they see.")
    maker.chart(bars=5, caption="Figure 1: Temperature of the kiln while it burns")
    return maker.write(folder / "works.pdf").read_bytes()
