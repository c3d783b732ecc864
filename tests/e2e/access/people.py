"""The people and documents of the access tests, and an oracle for access rights that uses plain sets instead
of filters.
"""

import time
from dataclasses import dataclass

from shared.access.identity import sign_dev_token
from shared.access.models import UserContext

ODD_GROUP = "r&d, \"north\" | süd;~^ 'x' 研究"
"""Every sign that a list of principals could be split at, quotes, and other scripts."""


@dataclass(frozen=True)
class Person:
    """A user, with the claims of their token."""

    user_id: str
    groups: tuple[str, ...] = ()
    department: str | None = None
    org_id: str | None = None
    roles: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The principals in access lists that match this person."""
        organisation = {f"org:{self.org_id}"} if self.org_id else set()
        department = {self.department} if self.department else set()
        return frozenset({self.user_id, *self.groups, *department, *organisation, "*"})

    @property
    def context(self) -> UserContext:
        return UserContext(
            user_id=self.user_id,
            groups=self.groups,
            department=self.department,
            org_id=self.org_id,
            roles=self.roles,
        )

    def token(self, secret: str) -> str:
        claims = {"sub": self.user_id, "groups": list(self.groups), "roles": list(self.roles)}
        ends = {"exp": int(time.time()) + 3600}
        return sign_dev_token(
            {**claims, "department": self.department, "org_id": self.org_id, **ends}, secret
        )


@dataclass(frozen=True)
class Paper:
    """A document. `mark` occurs only in its text and its file name.

    Attributes:
        in_thread: whether the document is a file in a conversation of its owner.
    """

    key: str
    mark: str
    days: int
    acl: tuple[str, ...] = ()
    owner_id: str | None = None
    project_id: str | None = None
    suffix: str = "txt"
    in_thread: bool = False

    @property
    def filename(self) -> str:
        return f"turbine-{self.mark}.{self.suffix}"

    @property
    def text(self) -> str:
        return (
            f"The calibration interval of the Kestrel turbine is {self.days} days. "
            f"The reference of this calibration interval is {self.mark}."
        )


PEOPLE = {
    "owner": Person("olga"),
    "member": Person("mira", groups=("g-alpha",)),
    "member of a group of a longer name": Person("otto", groups=("g-alpha-2",)),
    "department": Person("dora", department="legal"),
    "member of the organisation": Person("omar", org_id="x"),
    "member of another organisation": Person("xenia", org_id="y"),
    "public only": Person("pia"),
    "administrator": Person("ada", roles=("admin",)),
    "quoted name": Person("o'neil"),
    "odd group": Person("rune", groups=(ODD_GROUP,)),
    "id that looks like a list": Person("g-alpha,legal|org:x;olga"),
    "id that looks like a filter": Person("x') or true or acl eq ('"),
    "group in capitals": Person("gina", groups=("G-ALPHA", " g-alpha-", "g-alpha,legal")),
    "organisation with a prefix": Person("paul", org_id="org:x"),
}
PAPERS = {
    paper.key: paper
    for paper in (
        Paper("owner", "zqowner", 11, owner_id="olga"),
        Paper("group", "zqgroup", 12, acl=("g-alpha",), suffix="pdf"),
        Paper("department", "zqlegal", 13, acl=("legal",)),
        Paper("organisation", "zqorgan", 14, acl=("org:x",)),
        Paper("public", "zqpublic", 15, acl=("*",)),
        Paper("nobody", "zqclosed", 16),
        Paper("project", "zqproject", 17, acl=("g-alpha",), project_id="hidden"),
        Paper("quoted", "zqquoted", 18, acl=("o'neil",)),
        Paper("odd", "zqodd", 19, acl=(ODD_GROUP, "another")),
        Paper("table", "zqtable", 20, acl=("legal",), suffix="csv"),
        Paper("conversation", "zqthread", 21, owner_id="olga", in_thread=True),
    )
}
ABSENT = "0" * 24
QUESTION = "What is the calibration interval of the Kestrel turbine?"


def may_read(person: Person, paper: Paper) -> bool:
    """Return whether the access list contains a principal of the person, or the person is the owner. This is
    False for files of conversations, which are readable only there.
    """
    if paper.in_thread:
        return False
    return any(name in paper.acl for name in person.names) or paper.owner_id == person.user_id


def may_open(person: Person, paper: Paper) -> bool:
    """Return whether the person may open the paper by its id, as they would from a source of an answer."""
    return may_read(person, paper) or (paper.in_thread and paper.owner_id == person.user_id)


def readable(person: Person) -> set[str]:
    """Return the keys of the papers that the person may read."""
    return {key for key, paper in PAPERS.items() if may_read(person, paper)}


def foreign(person: Person) -> list[Paper]:
    """Return the papers that must seem not to exist for the person."""
    return [paper for key, paper in PAPERS.items() if key not in readable(person)]


def leaked(person: Person, text: str) -> list[str]:
    """Return the keys of the forbidden papers whose mark occurs in a text."""
    return [paper.key for paper in foreign(person) if paper.mark in text.lower()]
