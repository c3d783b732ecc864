"""What documents are called in questions, as patterns; German words as ends of compounds."""

GENERIC = r"(?:documents|docs|files|papers|dokumente|dokumenten|dateien|unterlagen|schriftstücke)"
_ENGLISH = (
    "manual handbook guide guideline report contract agreement protocol datasheet presentation "
    "spreadsheet brochure "
    "leaflet specification whitepaper certificate tender statute record regulation template assessment audit "
    "article publication memo memorandum booklet catalogue form letter drawing plan deck slide sheet "
    "checklist "
    "proposal invoice offer concept review dossier instruction paper document file note deed"
).split()
_IRREGULAR = (
    "minutes policies studies theses policy study thesis pdf pdfs abstract guidance documentation ruling "
    "application handout law act lease leases specs memos"
).split()
_GERMAN_PLURAL = (
    r"(?:handbücher|handbüchern|berichte|berichten|richtlinien|verträge|verträgen|protokolle|protokollen|"
    r"pläne|"
    r"plänen|anleitungen|anweisungen|merkblätter|broschüren|gutachten|studien|listen|formulare|vorlagen|"
    r"präsentationen|angebote|rechnungen|zertifikate|beurteilungen|vereinbarungen|konzepte|satzungen|"
    r"leitfäden|"
    r"datenblätter|normen|artikel|verordnungen|tabellen|blätter|bescheide|nachweise|ausschreibungen|"
    r"akten|skripte)"
)
_GERMAN_SINGULAR = (
    r"(?:handbuch(?:e?s)?|bericht(?:e?s)?|richtlinie|vertrag(?:e?s)?|protokoll(?:s)?|plan(?:e?s)?|anleitung|"
    r"anweisung|merkblatt|broschüre|gutachten(?:s)?|studie|formular|präsentation|angebot(?:s)?|vereinbarung|"
    r"konzept(?:e?s)?|satzung|leitfaden(?:s)?|datenblatt|norm|artikel(?:s)?|verordnung|abschluss(?:es)?|"
    r"lastenheft(?:e?s)?|pflichtenheft(?:e?s)?|papier(?:e?s)?|verfügung|verzeichnis(?:ses)?|whitepaper|"
    r"dokument(?:e?s)?|"
    r"datei|police|ordnung|beschreibung|akte|skript)"
)
PLURAL = (
    rf"(?:{GENERIC}|policies|studies|theses|minutes|pdfs|leases|specs|"
    rf"(?:{'|'.join(_ENGLISH)})s|[\w-]*{_GERMAN_PLURAL})"
)
SINGULAR = rf"(?:{'|'.join([*_ENGLISH, *_IRREGULAR])}|[\w-]*{_GERMAN_SINGULAR})"
ANY = rf"(?:{PLURAL}|{SINGULAR})"
# File types: who asks for spreadsheets asks for a field of documents, not for a subject.
BY_FILE_TYPE = (
    r"(?:pdfs|pdf[- ](?:files|documents|dateien)|spreadsheets|(?:excel|word|"
    r"powerpoint)[- ]?\w+|csvs?|csv[- ]\w+)"
)
