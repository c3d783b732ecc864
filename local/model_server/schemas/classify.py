"""Type of a question, by the words that give it away in English and German, misspelt ones included. Pure.

docs/evaluation.md defines the types and where they border on each other. Order decides: what a person wants
to do or must do comes first, then comparisons, fields of documents, the gist of one, lists of them; what is
left is answered by what documents say.
"""

import re

from local.model_server.schemas.comparing import is_comparison
from local.model_server.schemas.cue_spelling import mend
from local.model_server.schemas.document_kinds import ANY, BY_FILE_TYPE, GENERIC, PLURAL, SINGULAR
from local.model_server.schemas.intents import intent_of as _intent_of
from local.model_server.schemas.intents import is_own_task

_UP_TO_3 = r"(?:[\w'-]+\s+){0,3}?"
# Within a name before its kind ("inspection reports"): a preposition or genitive would begin another one.
_OF_NAME = r"(?:(?!(?:of|in|from|about|for|on|to|by|der|des|von|in|aus|im|zum|zur|that)\b)[\w'-]+\s+){0,4}?"
_OBLIGATION = re.compile(
    rf"\b(?:which|what|welche\w*|was für)\s+{_UP_TO_3}{ANY}\b.{{0,30}}"
    r"\b(?:(?:do|does|must|should|shall|have|has|can|may)\s+(?:i|we|you|one|he|she|they|\w+s)\s+"
    r"(?:need|have to|bring|submit|hand|sign|provide|fill|attach|send|carry)|"
    r"(?:muss|müssen|soll|sollen|brauche|brauchen|benötige|benötigen|braucht|benötigt|darf)\b|"
    r"(?:is|are|must be|have to be)\s+(?:required|needed|mandatory|submitted|signed)|(?:sind|"
    r"ist)\s+(?:nötig|erforderlich))",
    re.IGNORECASE,
)

_ASKED_PERSON = (
    r"^(?:who|when|where|which|how (?:many|much|often)|wer|wem|wann|wo|welche\w*|wie (?:viele?|oft))\b"
)
_YEAR = r"(?:19|20)\d\d"
_TIME = (
    rf"(?:{_YEAR}|(?:last|this|past|previous)\s+(?:\w+\s+)?(?:days?|weeks?|months?|quarter|years?)|"
    r"yesterday|today|"
    r"gestern|heute|(?:letzten?|letztem|vorigen?|dieser|diesem|dieses)\s+(?:woche|monate?s?|jahr\w*|quartal)|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|"
    r"januar|februar|märz|mai|juni|juli|oktober|dezember)"
)
_MADE = (
    r"(?:written|published|uploaded|created|issued|updated|revised|modified|released|authored|edited|"
    r"drafted|added|"
    r"geschrieben|verfasst|erstellt|veröffentlicht|hochgeladen|aktualisiert|überarbeitet|herausgegeben|"
    r"angelegt)"
)
_METADATA = re.compile(
    "|".join(
        (
            r"\bwho(?:\s+\w+)?\s+(?:wrote|authored|uploaded|published|drafted|edited|revised)\s+(?:the|"
            rf"this|that|our|it|{_OF_NAME}{ANY})\b",
            rf"\bwho\s+(?:has\s+)?(?:created|prepared|owns|made|changed|updated|issued)\b.{{0,40}}\b{ANY}\b",
            r"\bwho is the (?:author|owner|editor)\b|\bauthors?\s+(?:of|for)\b|\bby (?:whom|which author)\b",
            rf"\bwer\b.{{0,90}}\b{_MADE}\b|\b(?:autor|autorin|verfasser|verfasserin|urheber)\b",
            rf"\bvon (?:wem|welche[mr] \w+)\b.{{0,60}}(?:\b{_MADE}\b|\b{ANY}\b)|\bstamm(?:en|"
            r"t) (?:\w+\s+)?von\b",
            rf"\bwhen\b.{{0,40}}\b(?:the|this|that|our|it|each|{ANY})\b.{{0,60}}\b(?:written|published|"
            rf"uploaded|released|revised|authored|last\s+{_MADE}|last changed)\b",
            rf"\bwhen\b.{{0,40}}\b{ANY}\b.{{0,40}}\b(?:{_MADE}|changed)\b",
            rf"\b(?:wann|an welchem (?:tag|datum))\b.{{0,90}}\b(?:{_MADE}|zuletzt geändert)\b",
            r"\b(?:publication|creation|upload|issue|revision) date\b|\bdate of (?:the )?(?:last )?"
            r"(?:revision|publication|creation|issue|upload|change|update)\b",
            r"\b(?:erscheinungs|erstellungs|änderungs|veröffentlichungs)(?:datum|jahr)\b|"
            r"\bdatum der\b.{0,20}änderung",
            r"\bhow many pages\b(?!\s+(?:may|must|can|should))|\bwie ?viele seiten\b(?!\s+(?:darf|"
            r"dürfen|muss|soll))",
            r"\b(?:file ?(?:type|format|size|name)|dateityp|dateiformat|dateigröße|dateiname)\b",
            r"\bhow (?:large|big) is the (?:\w+\s+)?(?:file|pdf|document)\b|"
            r"\bwie groß ist die (?:\w+\s+)?datei\b",
            r"\b(?:which|what) (?:version|edition|revision)\b.{0,60}\b(?:latest|newest|current|"
            r"most recent)\b",
            r"\bwelche (?:version|fassung|ausgabe)\b.{0,60}\b(?:aktuell\w*|neue?ste\w*|jüngste\w*|"
            r"gültig\w*)\b",
            r"\b(?:in )?(?:which|what) folder\b|\bin welche[mr] (?:ordner|verzeichnis|ablage)\b",
            rf"\b(?:which|what) language\b.{{0,60}}\b(?:{ANY}|written)\b|\bin welcher sprache\b",
            rf"\b(?:newest|latest|most recent|oldest)\s+{_UP_TO_3}{PLURAL}\b|\b(?:neue?sten|ältesten|"
            rf"jüngsten)\s+{PLURAL}\b",
            rf"\b(?:from|of|in) (?:which|what) year is\b|\baus welchem jahr\b.{{0,20}}\b{ANY}\b",
            r"\b(?:what|which\b.{0,30})\s+(?:did|has|have)\b.{0,50}\b(?:publish|release|upload|"
            rf"issue|{_MADE})\w*\b",
            r"\bwas (?:hat|haben)\b.{0,70}\b(?:veröffentlicht|herausgegeben|hochgeladen|verfasst|"
            r"geschrieben)\b",
            r"\b(?:everything|all|anything)\b.{0,40}\b(?:has|have|had)?\s*(?:written|published|uploaded|"
            r"authored)\b",
            r"\b(?:title|department|language|type|date|(?<!short )version|author|owner) of (?:the|"
            rf"this)\s+{_UP_TO_3}{SINGULAR}\b",
            r"\bwhich (?:department|team)\b.{0,40}\b(?:owns|wrote|published|issued)\b",
            rf"\b{ANY}\s+(?:by|from|von|vom)\s+(?:the\s+)?(?:\w+\s+)?(?:professor|prof\.|dr\.?|mr\.?|"
            r"mrs\.?|ms\.?|herrn?|frau|department|team)",
            rf"\b{ANY}\s+(?:by|from|von|vom|der)\s+(?:the\s+)?\w+\s+(?:department|team|abteilung)\b",
        )
    ),
    re.IGNORECASE,
)
# A list of documents that is asked for by one of their fields.
_BY_FIELD = re.compile(
    "|".join(
        (
            rf"\b{BY_FILE_TYPE}\b",
            rf"\b{_MADE}\b",
            rf"\b{PLURAL}\s+(?:\w+\s+)?(?:from|of|in|since|before|after|dated|aus|von|vom|seit|vor|nach|"
            r"bis)\s+"
            rf"(?:the\s+|den\s+|dem\s+|der\s+)?(?:year\s+|jahre?\s+|beginning\s+|start\s+)?(?:of\s+)?{_TIME}",
            rf"\b(?:since|seit|before|vor|after|nach)\s+(?:dem\s+jahr\s+)?{_TIME}",
            r"\b(?:newer|older|later|earlier|neuer|älter|jünger|später|früher)\s+(?:than|als)\b",
            r"\bchanged\b.{0,20}\b(?:last|since|this|yesterday)\b|\bgeändert\b",
            r"\b(?:by|from)\s+(?:the\s+)?\w+\s+(?:department|team|office)\b|\b\w*abteilung\b",
        )
    ),
    re.IGNORECASE,
)
_OF_WHICH_FIELD = re.compile(
    rf"^(?:which|what|welche)\s+{_OF_NAME}{PLURAL}\s+(?:are|were|was|is|sind|waren|wurden|stammen)\b",
    re.IGNORECASE,
)
_BY_NAME = re.compile(rf"(?i:\b{PLURAL})\s+(?:by|von|vom)\s+[A-ZÄÖÜ]\w+(?:\s+[A-ZÄÖÜ]\w+)?")

_SUMMARY_VERB = re.compile(
    r"\bsummari[sz](?:e|es|ing)\b|\bsum\b.{0,60}\bup\b|\brecap\b|\btl;?\s?dr\b|\bcondens(?:e|ing) (?:the|"
    r"this|that|our|it)\b|\bboil\b.{0,80}\bdown\b|\bdigest the\b|"
    r"\bfass\w*\b.{0,90}\bzusammen\b|\bzusammen(?:zu)?fassen\b|\bauf den punkt\b|\bgist\b|\bin a nutshell\b",
    re.IGNORECASE,
)
_SUMMARY_NOUN = re.compile(
    r"\bsummary\b|\bsynopsis\b|\babstract of\b|\bshort version\b|\b(?:zusammenfassung|kurzfassung|"
    r"inhaltsangabe|kurzversion)\b|"
    r"\b(?:key|main|central|essential|core|most important)\s+"
    r"(?:points?|takeaways?|findings?|messages?|statements?|ideas?|conclusions?|results?)\s+(?:of|from|in)\b|"
    r"\b(?:kern|haupt)(?:aussagen?|punkte|ergebnisse|inhalte|thesen|gedanken)\b|"
    r"\bwichtigsten? (?:punkte?|aussagen?|ergebnisse|inhalte|erkenntnisse)\b|\bwesentlichen? (?:punkte|"
    r"aussagen|inhalte?)\b|"
    rf"\boutline\b.{{0,60}}\b{ANY}\b|\boverview of (?!.{{0,20}}\b(?:available|"
    rf"all)\b)(?!{_OF_NAME}{PLURAL}\b)|"
    rf"\büberblick über (?:den inhalt|(?:das|den|die)\s+{_OF_NAME}{SINGULAR}\b)",
    re.IGNORECASE,
)
_BRIEF = (
    r"(?:briefly|in (?:short|brief|essence)|overall|roughly|in (?:a |one |two |three |four |five |few |\d+ )+"
    r"(?:words?|sentences?|points?|bullets?|lines?|paragraphs?)|"
    r"kurz|knapp|in (?:wenigen|ein paar|kurzen|\w+) (?:sätzen|worten|stichpunkten)|"
    r"im (?:großen und ganzen|wesentlichen|kern)|"
    r"insgesamt|grob)"
)
_SAYS = (
    r"(?:says?|about|states?|contents?|contains?|covers?|in it|inside|steht|drin|inhalt|besagt|"
    r"handelt|aussagt)"
)
_SUMMARY_ABOUT = re.compile(
    "|".join(
        (
            r"\bwhat(?:'s| is| are) (?:the|this|that|our|"
            rf"your)\s+(?:[\w'-]+\s+){{0,6}}?{ANY}\b.{{0,50}}\babout\s*[?.!]*$",
            rf"\bwhat does (?:the|this|our)\s+(?:[\w'-]+\s+){{0,4}}?{SINGULAR}\b.{{0,50}}\b(?:cover|"
            r"deal with|contain|discuss)\s*[?.!]*$",
            rf"\bwhat(?:'s| is) in (?:it|the\s+(?:[\w'-]+\s+){{0,4}}?{SINGULAR})\s*[?.!]*$",
            r"^(?!.*\bin welchen\b).*\bworum\b.{0,12}\bgeht\b|\bwovon\b.{0,12}\bhandelt\b|\bum was geht es\b",
            rf"\bwas (?:behandelt|beinhaltet|enthält)\s+(?:das|der|die|unser\w*)\s+{_OF_NAME}{SINGULAR}\b",
            rf"\b{_BRIEF}\b.{{0,70}}\b{ANY}\b.{{0,50}}\b{_SAYS}\b|"
            rf"\b{_BRIEF}\b.{{0,40}}\b{_SAYS}\b.{{0,30}}\b{ANY}\b",
            rf"\b{_SAYS}\b.{{0,30}}\b{ANY}\b.{{0,50}}\b{_BRIEF}\b|"
            rf"\b{_SAYS}\b.{{0,40}}\b{_BRIEF}\b.{{0,40}}\b{ANY}\b",
            rf"\b{ANY}\b.{{0,50}}\b{_SAYS}\b.{{0,20}}\b{_BRIEF}\b",
            r"\binhalt\b.{0,60}\bwieder(?:zu)?geben\b|\bgib\b.{0,60}\binhalt\b.{0,60}\bwieder\b",
        )
    ),
    re.IGNORECASE,
)

_THERE_IS = (
    r"(?:(?:do|have) we (?:have|got|keep|hold|own)?|have we got|do (?:i|you) have|(?:are|is) there|exists?|"
    r"(?:is|are) (?:available|stored|on file|kept)|on file|we (?:have|hold|keep|store)|access to|mentions?|"
    r"deals? with|dealing with|talks? about|covers?|covering|concerns?|concerning|in (?:the|"
    r"our) (?:library|archive|knowledge base|system|"
    r"collection|folder)|gibt es|liegen|liegt|haben wir|hat|existieren|vorhanden\w*|verfügbar\w*|"
    r"gespeichert|abgelegt|zugriff|"
    r"erwähnen|behandeln|geht es um|besitzen wir)"
)
_SHOW = (
    r"(?:list|show|showing|listing|name|find|give|get|display|enumerate|search|fetch|see|need|want|"
    r"looking for|liste|zeige?|zeigen|nenne|nennen|"
    r"such|suche|suchen|finde|finden|gib|auflisten|brauche|bräuchte|möchte)"
)
_QUANTIFIED = r"(?:all|every|each|any|alle[rn]?|sämtliche[rn]?|jede[snrm]?)"
_LIST_OF = r"(?:lists?|names?|titles?|overview|inventory|aufstellung|übersicht|liste|verzeichnis|namen|titel)"
_LISTING = re.compile(
    "|".join(
        (
            rf"\b(?:which|what|welche[nrs]?)\s+(?:other\s+|of our\s+)?{_OF_NAME}{PLURAL}\b(?:\s*[?.!]*$|"
            rf".{{0,60}}\b{_THERE_IS}\b)",
            rf"\b(?:which|what)\s+(?:other\s+)?{GENERIC}\b(?!\s+(?:says?|states?|is the))",
            rf"\b(?:how many|wie ?viele)\s+(?!minutes\b){_OF_NAME}{PLURAL}\b(?:\s*[?.!]*$|"
            rf".{{0,60}}\b{_THERE_IS}\b)",
            r"\b(?:do we have|have we got|are there|is there|gibt es|haben wir|liegt|"
            rf"liegen)\s+(?:bei uns\s+|hier\s+)?{_OF_NAME}{ANY}\b",
            r"\b(?:is there|do we have|have we got|have you got) (?:anything|something|material)\b",
            r"\bwhat (?:do we have|have we got|is there)\s+(?:on|about|for|in)\b|"
            r"\bwhat is in the (?:knowledge base|library|archive|system)\b",
            r"\bwas (?:haben wir|gibt es)\b.{0,30}\b(?:an|zu|zum|zur|über)\b|\bwas liegt\b.{0,60}\bvor\b",
            rf"\b{_SHOW}\b\s+(?:me\s+|us\s+|mir\s+|uns\s+)?(?:bitte\s+|please\s+|mal\s+)?(?:a |an |the |"
            r"die |eine )?"
            rf"(?:{_LIST_OF}\s+(?:of|der|von|aller|sämtlicher)\s+)?{_OF_NAME}{PLURAL}\b",
            rf"\b{_SHOW}\b.{{0,30}}\b{_QUANTIFIED}\s+{_OF_NAME}{ANY}\b",
            rf"\b{_QUANTIFIED}\s+{_OF_NAME}{PLURAL}\b.{{0,60}}\b(?:nennen|zeigen|auflisten|auf|"
            r"heraus\w*)\s*[?.!]*$",
            rf"\b{_LIST_OF}\s+(?:of|der|von|aller|alle|sämtlicher|about)\s+(?:the\s+|"
            rf"all\s+)?(?:available\s+)?{_OF_NAME}{PLURAL}\b",
            rf"^{_QUANTIFIED}\s+(?:the\s+|our\s+)?{_OF_NAME}{PLURAL}\b(?!.{{0,60}}\b(?:say|says|state|"
            r"sagen|steht)\b)",
            rf"^{_QUANTIFIED}\s+{_OF_NAME}{ANY}\s+(?:we|i)\s+(?:have|hold|own)\b",
            rf"^(?:übersicht|liste|overview)\s+{_OF_NAME}{PLURAL}\b",
            rf"\b{_LIST_OF}\s+(?:of|about)\s+(?:the\s+)?available\b",
        )
    ),
    re.IGNORECASE,
)
_BARE_LIST = re.compile(rf"^(?:[\w-]+\s+){{0,3}}{PLURAL}(?:\s+[\w-]+){{0,4}}$", re.IGNORECASE)
_VERB = re.compile(
    r"\b(?:is|are|was|were|do|does|did|has|have|had|can|may|must|should|will|what|how|who|when|where|why|"
    r"say|says|"
    r"ist|sind|war|hat|haben|kann|darf|muss|soll|wird|werden|was|wie|wer|wann|wo|warum|steht|"
    r"for replacing)\b",
    re.IGNORECASE,
)


def query_type_of(question: str) -> str:
    """One of the five query types; CONTENT_SEARCH when nothing points elsewhere."""
    asked = mend(question).strip()
    if is_own_task(asked) or _OBLIGATION.search(asked):
        return "CONTENT_SEARCH"
    if is_comparison(asked):
        return "COMPARISON"
    lists = _lists_documents(asked)
    if _METADATA.search(asked) or ((lists or _OF_WHICH_FIELD.search(asked)) and _names_field(asked)):
        return "METADATA_SEARCH"
    if _is_summary(asked):
        return "DOCUMENT_SUMMARY"
    return "LISTING" if lists else "CONTENT_SEARCH"


def intent_of(question: str, query_type: str) -> str:
    """One of the six intents. Wording decides where the type does not."""
    return _intent_of(mend(question).strip(), query_type)


def _names_field(asked: str) -> bool:
    return bool(_BY_FIELD.search(asked) or _BY_NAME.search(asked))


def _is_summary(asked: str) -> bool:
    if _SUMMARY_VERB.search(asked) or _SUMMARY_ABOUT.search(asked):
        return True
    # "Who signs the summary?": the summary is a thing of the question, not what is wanted.
    return bool(_SUMMARY_NOUN.search(asked)) and not re.search(_ASKED_PERSON, asked, re.IGNORECASE)


def _lists_documents(asked: str) -> bool:
    if _LISTING.search(asked):
        return True
    bare = asked.rstrip("?.! ")
    by_field = re.match(rf"^(?:\w+\s+)?{PLURAL}\b", bare, re.IGNORECASE) and _names_field(asked)
    return bool((_BARE_LIST.match(bare) or by_field) and not _VERB.search(bare))
