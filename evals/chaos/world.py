"""What people did to documents, runs and persons, and so what the stores must hold afterwards. Pure."""

from dataclasses import dataclass, field


@dataclass
class Paper:
    """A document as its owner wants it.

    Attributes:
        name: of its blob.
        version: of its text; 0 = deleted.
        readers: who may read it, by user id.
        sections: each becomes a block.
    """

    name: str
    version: int = 1
    readers: tuple[str, ...] = ("anna", "ben")
    sections: int = 6

    def sentences(self, version: int) -> list[str]:
        """One of each section; every second one stays from version to version."""
        mark = self.name.removesuffix(".md")
        return [
            f"Sentence {section} of {mark} in edition {version if section % 2 else 1} is about its pump."
            for section in range(self.sections)
        ]

    def content(self) -> bytes:
        parts = [f"## Part {number}\n\n{text}\n" for number, text in enumerate(self.sentences(self.version))]
        return f"# {self.name}\n\n{''.join(parts)}".encode()


def signature(person: str) -> str:
    """What a person who is erased writes below their question; nothing may hold it afterwards."""
    return f"Signed: {person}"


@dataclass
class Asked:
    """A question, and the numbers of the events that its reader received."""

    run_id: str = ""
    numbers: list[int] = field(default_factory=list)


@dataclass
class World:
    """All rounds so far; `leaks`: what a reader was shown wrongly, `unfinished`: what could not be done."""

    papers: dict[str, Paper] = field(default_factory=dict)
    runs: list[Asked] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    def living(self) -> list[Paper]:
        return [paper for paper in self.papers.values() if paper.version]
