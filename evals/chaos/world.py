"""The expected state of the stores after the users' actions on documents, runs and accounts. Pure."""

from dataclasses import dataclass, field


@dataclass
class Paper:
    """A document in the state that its owner expects.

    Attributes:
        name: of its blob.
        version: of its text; 0 = deleted.
        readers: user ids of its readers.
        sections: each becomes a block.
    """

    name: str
    version: int = 1
    readers: tuple[str, ...] = ("anna", "ben")
    sections: int = 6

    def sentences(self, version: int) -> list[str]:
        """Return one sentence per section. Every second sentence is the same in all versions."""
        mark = self.name.removesuffix(".md")
        return [
            f"Sentence {section} of {mark} in edition {version if section % 2 else 1} is about its pump."
            for section in range(self.sections)
        ]

    def content(self) -> bytes:
        parts = [f"## Part {number}\n\n{text}\n" for number, text in enumerate(self.sentences(self.version))]
        return f"# {self.name}\n\n{''.join(parts)}".encode()


def signature(person: str) -> str:
    """Return the text that marks the questions of a user who is erased. After the erasure, no store may
    contain it.
    """
    return f"Signed: {person}"


@dataclass
class Asked:
    """A question with the numbers of the events that its reader has received."""

    run_id: str = ""
    numbers: list[int] = field(default_factory=list)


@dataclass
class World:
    """The expected state after all rounds so far. `leaks` lists contents that an unauthorised user saw, and
    `unfinished` actions that were never confirmed.
    """

    papers: dict[str, Paper] = field(default_factory=dict)
    runs: list[Asked] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    def living(self) -> list[Paper]:
        return [paper for paper in self.papers.values() if paper.version]
