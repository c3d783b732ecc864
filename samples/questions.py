"""Sample questions with the expected answers, for the demo, the tests and the first start.

Expectations refer to the samples' content; a test checks that the named pages contain it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from samples.acl import ANNA, BEN, SAMPLE_USERS, SampleUser, readable_by


@dataclass(frozen=True)
class Expected:
    """The properties that a correct answer for one user must have.

    Attributes:
        says: texts that the answer contains.
        cites: page by file (from 1; None without pages) of required citations.
        abstains: whether the answer says that the documents don't contain it; None allows either.
    """

    says: tuple[str, ...] = ()
    cites: Mapping[str, int | None] = field(default_factory=dict)
    abstains: bool | None = False


@dataclass(frozen=True)
class SampleQuestion:
    """A question with its type and the expected answer for each user."""

    query_type: str
    text: str
    expected: Mapping[str, Expected]

    def expectation(self, user: SampleUser) -> Expected:
        return self.expected[user.user_id]


def _for_both(expected: Expected) -> dict[str, Expected]:
    return {user.user_id: expected for user in SAMPLE_USERS}


FIRST_QUESTION = SampleQuestion(
    "CONTENT_SEARCH",
    "What is the maximum operating pressure of the Heron 400?",
    {
        ANNA.user_id: Expected(says=("6.5 bar",), cites={"heron-400-manual.pdf": 4}),
        # Ben's other documents mention the pump, so his answer may be off topic, but it must never quote the
        # manual.
        BEN.user_id: Expected(abstains=None),
    },
)

DEMO_QUESTIONS = (
    SampleQuestion(
        "LISTING",
        "List all documents.",
        {user.user_id: Expected(says=tuple(sorted(readable_by(user)))) for user in SAMPLE_USERS},
    ),
    SampleQuestion(
        "CONTENT_SEARCH",
        "How many weeks of paid parental leave does Fernhill Pumpworks grant?",
        {
            # Anna may not read the policy, so she must get no answer and no hint that the policy exists.
            ANNA.user_id: Expected(abstains=True),
            BEN.user_id: Expected(says=("18 weeks",), cites={"leave-policy.pdf": 1}),
        },
    ),
    SampleQuestion(
        "DOCUMENT_SUMMARY",
        "Summarise the Heron 400 installation guide.",
        _for_both(Expected(cites={"heron-400-installation-guide.pdf": 3})),
    ),
    SampleQuestion(
        "METADATA_SEARCH",
        "Which documents were written by Tobias Renner?",
        _for_both(Expected(says=("annual-report-2023.pdf", "annual-report-2024.pdf"))),
    ),
    SampleQuestion(
        "COMPARISON",
        "Compare the revenue in the annual report 2023 and the annual report 2024.",
        _for_both(
            Expected(
                says=("48.2 million", "53.7 million"),
                cites={"annual-report-2023.pdf": 2, "annual-report-2024.pdf": 2},
            )
        ),
    ),
)

UNANSWERABLE = "What does the canteen serve on Fridays?"

# Words that occur in only one document. An answer that contains them reveals that document.
GIVEAWAYS: Mapping[str, tuple[str, ...]] = {
    "heron-400-manual.pdf": ("6.5 bar", "HM-400-07"),
    "leave-policy.pdf": ("18 weeks", "Salary bands"),
    "memo-impeller-alloy.txt": ("Saltmarsh", "aluminium bronze"),
    "wartungsplan-kestrel-120.pdf": ("Dosierkopf", "CLP 220"),
}
