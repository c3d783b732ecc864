"""The words around what documents say in reports, in English and German. A table, no logic but the choice."""

from dataclasses import dataclass

from local.model_server.text.languages import detect_language


@dataclass(frozen=True)
class Wording:
    """`{}` is filled in."""

    page: str
    beginning: str
    silent_on: str
    not_read: str
    silent_document: str
    partly_read: str
    differ: str
    says_nothing: str
    no_pages: str
    no_claims: str
    one_site: str
    several_sites: str
    official: str
    editable: str
    unknown_site: str


_ENGLISH = Wording(
    page="Page {}",
    beginning="Without a heading",
    silent_on="The passages at hand say nothing on: {}.",
    not_read="No passage of {} was at hand.",
    silent_document="The passages of {} say nothing of what is asked.",
    partly_read="Of {} passages from {} of its {} pages were read.",
    differ="The documents give different values: {}",
    says_nothing="The passages at hand say nothing of it.",
    no_pages="No page of the web was found.",
    no_claims="No page that was found says anything of it.",
    one_site="Only {} says this; no other site confirms it.",
    several_sites="{} sites say this: {}.",
    official="{} is the site of a public body or a university.",
    editable="{} can be edited by anybody.",
    unknown_site="How far {} can be trusted is not known.",
)
_GERMAN = Wording(
    page="Seite {}",
    beginning="Ohne Überschrift",
    silent_on="Die vorliegenden Textstellen sagen nichts zu: {}.",
    not_read="Aus {} lag keine Textstelle vor.",
    silent_document="Die Textstellen aus {} sagen nichts zum Gefragten.",
    partly_read="Aus {} wurden Stellen von {} der {} Seiten gelesen.",
    differ="Die Dokumente nennen verschiedene Werte: {}",
    says_nothing="Die vorliegenden Textstellen sagen dazu nichts.",
    no_pages="Im Web wurde keine Seite gefunden.",
    no_claims="Keine gefundene Seite sagt etwas dazu.",
    one_site="Nur {} sagt das; keine andere Quelle bestätigt es.",
    several_sites="{} Quellen sagen das: {}.",
    official="{} ist die Seite einer öffentlichen Stelle oder Hochschule.",
    editable="{} kann von jedem bearbeitet werden.",
    unknown_site="Wie verlässlich {} ist, ist nicht bekannt.",
)


def wording_for(task: str) -> Wording:
    """In the task's language; English for all but German."""
    return _GERMAN if detect_language(task) == "de" else _ENGLISH
