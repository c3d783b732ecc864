"""Intent of a question: what its author wants to do with the answer. Cues in English and German. Pure.

Order decides: proof, then a way to do something, then an open subject; the rest is a fact to be looked up.
"""

import re

_WE = r"(?:i|we|you|one|someone|somebody|people|they|employees|staff)"
_ICH = r"(?:ich|wir|man|du|sie)"
_OWN_TASK = re.compile(
    r"^(?:\W*(?:please|hi|hello|hallo|bitte)\W+)*(?:how|in what way)\s+(?:do|can|could|should|would|"
    rf"must|may)\s+{_WE}\b|"
    r"^how to\b|"
    rf"^wie\s+(?!viele?\b|lange\b|oft\b|hoch\b|weit\b|alt\b|groß\b|schnell\b|unterscheide)\w+\s+{_ICH}\b",
    re.IGNORECASE,
)
_EVIDENCE = re.compile(
    "|".join(
        (
            r"\b(?:what|which|any|show|give|is there|find|see)\b(?:\s+\w+){0,4}?\s+(?:evidence|"
            r"proof)\b(?!\s+of\s*[?.!]*$)|^(?:evidence|proof)\b",
            r"\b(?:prove|proves|proven|proving|substantiate\w*|verbatim|exact(?:ly)? word\w*|"
            r"corroborat\w+)\b",
            r"\bback(?:ed)? (?:\w+\s+){0,3}?up\b|\bback up\b|\bwith sources\b|\bsources? (?:for|"
            r"that says?|of (?:the|that|this) (?:claim|statement|figure|number))\b",
            r"\bwhere (?:does|do|did)\b.{0,50}\b(?:say|state|mention|specify|require|mentioned)\b|"
            r"\bwhere (?:is|are|was)\b.{0,50}\b(?:written|stated|mentioned|documented|specified|"
            r"laid down|regulated|said)\b|"
            r"\bshow me where\b",
            r"\b(?:which|what) (?:passage|paragraph|sentence|clause|section|page|source)s?\b|"
            r"\bon (?:which|what) page\b",
            r"(?:^|\bplease |\byou |\band )(?:quote|cite)\b|\bquote (?:the|what|me)\b|\bcite (?:the|a|"
            r"your)\b|\bcitations? for\b",
            r"\b(?:show|find|give)\b.{0,20}\b(?:passage|paragraph)\b",
            r"\bbeleg(?:e|en|t|st)?\b|\bnachweis(?:e|en|bar)?\b|\bnachgewiesen\b|\bbeweis\w*|\bnachzulesen\b",
            r"\bauf welcher seite\b|\bwelche[rs]? (?:seite|stelle|absatz|satz|passage|paragraph|klausel|"
            r"abschnitt)\b|\bin welchem (?:absatz|abschnitt|satz|paragraph\w*)\b",
            r"\bwo\b.{0,30}\b(?:steht|stehen|geschrieben|festgehalten|geregelt|vermerkt)\b",
            r"\bzitier\w*|\bwörtlich\w*|\bwortlaut\b|\btextstelle\w*|\bdie stelle\b|\b(?:quelle|"
            r"quellen)\b|\bworauf\b.{0,20}\bstütz\w+",
        )
    ),
    re.IGNORECASE,
)
_DONE = r"(?:\w{3,}ed|done|taken|made|given|put|set|drawn|built|kept|sent|cut|chosen|worn|held)"
_PROCEDURAL = re.compile(
    "|".join(
        (
            rf"\bhow (?:do|can|could|should|would|must)\s+{_WE}\b|\bhow to\b|"
            r"\bhow should\b.{0,20}\b(?:proceed|be)\b",
            rf"\bhow (?:is|are|must|should)\b.{{0,60}}\b(?:be\s+)?{_DONE}\b(?:\s+\w+){{0,4}}\s*[?.!]*$",
            r"\bsteps? (?:to|for|of|in|when)\b|\bstep by step\b|\b(?:instructions?|procedure|process|"
            r"workflow|walkthrough) (?:for|to|of|when)\b",
            r"\b(?:guide|walk|take|talk) (?:me|us) through\b|\bin (?:what|which) order\b",
            rf"\bwhat (?:should|must|shall|can|do|does|to)\b.{{0,25}}\b{_WE}?\s*(?:have to |"
            r"need to )?do\b(?! we know)",
            r"\bwhat (?:has|needs) to be done\b|\bwhat to do\b",
            rf"\bwie\s+(?!viele?\b|lange\b|oft\b|hoch\b|weit\b|alt\b|groß\b|schnell\b)\w+\s+{_ICH}\b|"
            r"\bwie (?:man|ich)\b",
            r"\bwie (?:kann|muss|soll|sollte|wird|werden|geht)\b|\b(?:schritte|schritt für schritt|"
            r"vorgehen\w*|arbeitsschritte)\b",
            r"\banleitung\b|\bablauf\b|\bverfahren (?:zu[rm]?|für|bei)\b|\bin welcher reihenfolge\b|"
            r"\bwas (?:muss|soll|sollte|kann|mache|tue|ist)\b.{0,30}\b(?:tun|machen|zu beachten|"
            r"unternehmen)\b|\bwas (?:mache|tue) ich\b",
            r"\bdabei vorgehen\b|\bvorzugehen\b|\bgeht man\b.{0,40}\bvor\b",
        )
    ),
    re.IGNORECASE,
)
_BROAD = re.compile(
    "|".join(
        (
            r"\bwhat (?:do|does|is) (?:we|you|anybody|anyone)?\s*(?:already )?know[n]?\b",
            r"\btell (?:me|us) (?:more|everything|something|a bit|all)?\s*(?:about|on)\b|"
            r"\beverything (?:about|on)\b|"
            r"(?:^|\bplease |\byou |\bto )(?:explore|discuss|elaborate|describe|explain|brainstorm)\b|"
            r"\bbackground\b|\bhistory of\b|\bstate of\b",
            r"\bexperiences? (?:with|of)\b|\b(?:what|which|any|general|main|"
            r"the)\b(?:\s+\w+){0,3}?\s+(?:lessons|insights?|opinions|concerns|views|ideas|challenges|"
            r"opportunities|"
            r"drawbacks|advantages|disadvantages|implications|consequences|pros and cons|trends?)\b",
            r"\brisks (?:of|in|when|with|from|are|do|does|involved)\b|\b(?:what|"
            r"which)\b.{0,20}\bfactors\b|\binfluences?\b|\bimpacts? (?:of|on)\b|"
            r"\b(?<!side )(?<!side-)effects (?:of|on|does|do|did)\b",
            r"\bhow (?:has|have|did|is|are)\b.{0,60}\b(?:develop\w*|evolv\w*|changed over)\b|"
            r"\bwhat should (?:\w+ )?(?:be )?consider\w*\b|"
            r"\bpossible (?:uses|ways|solutions|causes|reasons)\b|\b(?:causes|reasons) (?:of|for)\b",
            r"\bwas (?:wissen wir|weiß man|ist bekannt|ist (?:\w+ )?über\b.{0,60}\bbekannt)|\berzähl\w*|"
            r"\balles über\b|\ballgemein\w* (?:etwas|was)\b",
            r"\b(?:risiken|erfahrungen|auswirkungen|folgen|hintergründe?|ideen|chancen|herausforderungen|"
            r"meinungen|bedenken|einflüsse|"
            r"ursachen|gründe|vorteile|nachteile|vor- und nachteile|erkenntnisse|trends?|lehren|"
            r"möglichkeiten)\b",
            r"\beinfluss\b|\bbeeinfluss\w+|\bwirk(?:t|en) sich\b|\bentwickelt\b|\bentwicklung (?:der|des|"
            r"von)\b|\bgeschichte (?:der|des|von)\b|"
            r"\b(?:beschreibe?|erkläre?|erläutere?|diskutiere?)\b",
        )
    ),
    re.IGNORECASE,
)
_BY_TYPE = {
    "DOCUMENT_SUMMARY": "doc_summary",
    "COMPARISON": "compare_docs",
    "LISTING": "fact_lookup",
    "METADATA_SEARCH": "fact_lookup",
}


def is_own_task(asked: str) -> bool:
    """ "How do I compare two invoices?": whatever it speaks of, a way to do something is asked for."""
    return bool(_OWN_TASK.search(asked))


def intent_of(asked: str, query_type: str) -> str:
    """One of the six intents; `asked` has its cue words spelled right."""
    if query_type in _BY_TYPE:
        return _BY_TYPE[query_type]
    for intent, pattern in (
        ("evidence_trace", _EVIDENCE),
        ("procedural", _PROCEDURAL),
        ("exploratory", _BROAD),
    ):
        if pattern.search(asked):
            return intent
    return "fact_lookup"
