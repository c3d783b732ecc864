"""What the model answers while documents are summarised: structured outputs, every field required."""

from pydantic import Field

from shared.models.base import Model


class WindowFinding(Model):
    """One finding of a window."""

    text: str = Field(description="One sentence that stands alone, in the language asked for.")
    quote: str = Field(description="Copied letter by letter from one block; proves the text.")


class WindowMetric(Model):
    """One number of a window."""

    name: str = Field(description="What is measured, such as 'maximum operating pressure'.")
    value: str = Field(description="The number as it is printed, without its unit.")
    unit: str | None = Field(description="The unit as it is printed, else null.")
    quote: str = Field(description="Copied letter by letter from one block; holds the number.")


class WindowSummary(Model):
    """What a window of a document says."""

    findings: tuple[WindowFinding, ...] = Field(description="0-8, the weightiest first.")
    metrics: tuple[WindowMetric, ...] = Field(description="0-10 numbers that matter.")
    tags: tuple[str, ...] = Field(description="1-5 categories, lower case.")


class FindingChoice(Model):
    """Which of many findings matter most."""

    numbers: tuple[int, ...] = Field(description="Numbers of findings, the weightiest first.")


class MergedStatement(Model):
    """One sentence or two of the narrative."""

    text: str = Field(description="Says only what the findings say. No numbers in brackets.")
    findings: tuple[int, ...] = Field(description="Numbers of the findings that it rests on, at least one.")


class MergedSummary(Model):
    """A narrative over findings."""

    statements: tuple[MergedStatement, ...] = Field(description="The narrative, in order.")
    key_findings: tuple[int, ...] = Field(description="Numbers of the 3-12 weightiest, the first ahead.")
    tags: tuple[str, ...] = Field(description="3-8 categories, chosen from the given ones where they fit.")
