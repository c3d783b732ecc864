"""Access lists of the sample documents, and the fictitious users to whom they apply."""

from dataclasses import dataclass

ORGANISATION = "fernhill"
EVERYBODY_HERE = f"org:{ORGANISATION}"


@dataclass(frozen=True)
class SampleUser:
    """A sample user, with the claims of a development token."""

    user_id: str
    name: str
    department: str
    groups: tuple[str, ...]
    org_id: str = ORGANISATION

    @property
    def principals(self) -> frozenset[str]:
        """All entries of access lists that give this user access."""
        return frozenset({self.user_id, self.department, *self.groups, f"org:{self.org_id}", "*"})


ANNA = SampleUser("anna", "Anna Bergqvist", department="engineering", groups=("safety-committee",))
BEN = SampleUser("ben", "Ben Okafor", department="people", groups=("hr", "safety-committee"))
SAMPLE_USERS = (ANNA, BEN)

ACCESS: dict[str, tuple[str, ...]] = {
    "heron-400-manual.pdf": ("engineering",),
    "heron-400-installation-guide.pdf": (EVERYBODY_HERE,),
    "annual-report-2023.pdf": (EVERYBODY_HERE,),
    "annual-report-2024.pdf": (EVERYBODY_HERE,),
    "leave-policy.pdf": ("hr",),
    "price-list-2025.pdf": (EVERYBODY_HERE,),
    "wartungsplan-kestrel-120.pdf": ("engineering",),
    "onboarding-guide.md": ("*",),
    "memo-impeller-alloy.txt": (ANNA.user_id,),
    "minutes-safety-committee.txt": ("safety-committee",),
}


def readable_by(user: SampleUser) -> frozenset[str]:
    """Return the file names of the samples that the user may read."""
    return frozenset(name for name, principals in ACCESS.items() if user.principals & set(principals))
