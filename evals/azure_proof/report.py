"""Formats the evidence as a Markdown page. Pure."""

from collections.abc import Iterator

from evals.azure_proof.evidence import Evidence, StepResult

_WORDS = {"passed": "passed", "failed": "**failed**", "skipped": "skipped"}
_TARGETS = {"azure": "Azure", "local": "local stack"}
_ABOUT = {
    "azure": "`azd up` deployed the app into a subscription; it was tested over HTTP and removed again.",
    "local": (
        "The same steps as in a subscription, on one machine: emulators in place of Azure's services, and a "
        "stand-in in place of the models. It proves the kit and the app's own code, and nothing about Azure."
    ),
}


def markdown(evidence: Evidence) -> str:
    """Return the evidence as a Markdown page."""
    return "\n".join(_lines(evidence)) + "\n"


def _lines(evidence: Evidence) -> Iterator[str]:
    facts, steps = evidence.facts, evidence.steps
    failed = [step for step in steps if step.status == "failed"]
    checks = [check for step in steps for check in step.outcome.checks]
    passed = sum(check.passed for check in checks)
    yield f"# Evidence: Groundwork, {_TARGETS[facts.target]}, {evidence.begun_at:%d %B %Y}"
    yield ""
    yield _ABOUT[facts.target]
    yield ""
    names = ", ".join(step.title for step in failed)
    verdict = f"Failed: {names}." if failed else "Every step passed."
    yield f"**{verdict} {passed} of {len(checks)} checks hold.** `evidence.json` contains the same data."
    yield ""
    yield "| what | value |"
    yield "|---|---|"
    yield f"| begun | {evidence.begun_at:%Y-%m-%d %H:%M} UTC |"
    yield f"| commit | `{evidence.commit}` |"
    yield f"| where | {_cell(facts.region)} |"
    yield f"| models | {_cell(facts.models)} |"
    for name, version in facts.versions.items():
        yield f"| {name} | {_cell(version)} |"
    yield ""
    yield "| step | result | checks | seconds |"
    yield "|---|---|---|---|"
    for step in steps:
        good = sum(check.passed for check in step.outcome.checks)
        count = f"{good} of {len(step.outcome.checks)}" if step.outcome.checks else "–"
        yield f"| [{step.title}](#{_anchor(step.title)}) | {_WORDS[step.status]} | {count} | {step.seconds} |"
    for step in steps:
        yield from _step(step)


def _step(step: StepResult) -> Iterator[str]:
    yield ""
    yield f"## {step.title}"
    outcome = step.outcome
    if outcome.checks:
        rows = [
            f"| {_cell(one.expected)} | {_cell(one.seen)} | {'✓' if one.passed else '✗'} |"
            for one in outcome.checks
        ]
        yield from ("", "| expected | seen | |", "|---|---|---|", *rows)
    if outcome.figures:
        rows = [f"| {_cell(name)} | {_cell(value)} |" for name, value in outcome.figures.items()]
        yield from ("", "| figure | value |", "|---|---|", *rows)
    notes = [f"- {' '.join(note.split())}" for note in outcome.notes]
    if step.status == "failed":
        notes.append(f"- **What to do:** {step.advice} Then repeat the step: `--step {step.name}`.")
    if notes:
        yield from ("", *notes)
    for name in outcome.files:
        yield from ("", f"![{name}]({name})")


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")


def _anchor(title: str) -> str:
    letters = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -")
    return letters.replace(" ", "-")
