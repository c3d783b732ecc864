// German texts for API codes. The API's own texts are English, so English needs no table.
import type { AuditEntry, DocumentView, QualityMeasures, SubagentView } from "../api/types";

type ReasonCode = SubagentView["reason_codes"][number];

const REASONS: Record<ReasonCode, string> = {
  SUBAGENTS_DISABLED: "Sub-Agenten sind hier deaktiviert.",
  SUBAGENTS_UNAVAILABLE: "Kein Sub-Agent kann das übernehmen.",
  RECURSION_LIMIT_REACHED: "Sub-Agenten dürfen keine weiteren Sub-Agenten beauftragen.",
  TARGET_NOT_READABLE: "Nicht alle betroffenen Dokumente sind lesbar.",
  LATENCY_BUDGET_EXHAUSTED: "Für eine gründlichere Suche reicht die Zeit nicht mehr.",
  TOKEN_BUDGET_EXHAUSTED: "Das Token-Budget dieser Frage reicht nicht mehr.",
  COST_BUDGET_EXHAUSTED: "Das Kostenbudget dieser Frage reicht nicht mehr.",
  CIRCUIT_OPEN: "Sub-Agenten sind zuletzt zu oft gescheitert und pausieren.",
  REQUIRED_TOOLS_RESTRICTED: "Die nötigen Werkzeuge sind hier nicht erlaubt.",
  REQUIRED_TOOLS_UNHEALTHY: "Die nötigen Werkzeuge funktionieren gerade nicht.",
  CONFIDENT_FACT_LOOKUP: "Die Stelle mit der Antwort wurde eindeutig gefunden.",
  FITS_WHOLE: "Die Dokumente sind kurz genug, um ganz gelesen zu werden.",
  DEGRADED_MODE: "Das System läuft eingeschränkt.",
  ACTIVE_LIMIT_REACHED: "Die Höchstzahl gleichzeitiger Sub-Agenten ist erreicht.",
  REQUEST_LIMIT_REACHED: "Die Höchstzahl der Sub-Agenten für diese Frage ist erreicht.",
  CHILD_LATENCY_TOO_SHORT: "Die Zeit reicht für einen Sub-Agenten nicht mehr.",
  INTENT_DOC_SUMMARY: "Gefragt ist eine Zusammenfassung.",
  INTENT_COMPARE_DOCS: "Gefragt ist ein Vergleich.",
  INTENT_EVIDENCE_TRACE: "Gefragt sind Belege.",
  FULL_DOCUMENT_REQUIRED: "Ein Dokument muss ganz gelesen werden.",
  LOW_RETRIEVAL_CONFIDENCE: "Die Treffer passen schlecht zur Frage.",
  AMBIGUOUS_RETRIEVAL: "Viele Stellen passen etwa gleich gut.",
  MULTI_DOCUMENT: "Es geht um mehrere Dokumente.",
  DEEP_MODE_REQUESTED: "Eine gründliche Antwort wurde gewünscht.",
  MODEL_REQUESTED: "Der Assistent bat um Hilfe bei einem Teil der Frage.",
  NO_TRIGGER: "Die Frage erfordert keine gründlichere Suche.",
  QUEUE_FULL: "Zu viele Sub-Agenten warten schon.",
  PROFILE_REDUCED: "Ein einfacherer Sub-Agent übernimmt.",
  TOOLS_RESTRICTED: "Der Sub-Agent hat weniger Werkzeuge als sonst.",
  POLICY_EVAL_ERROR: "Ob ein Sub-Agent sinnvoll ist, ließ sich nicht entscheiden.",
};

const ACTIONS: Record<AuditEntry["action"], string> = {
  answer: "Antwort",
  cancel: "abgebrochen",
  fail: "gescheitert",
  summary: "Zusammenfassung",
  search: "Suche",
  list: "aufgelistet",
  describe: "Angaben gelesen",
  page: "Seite gelesen",
  download: "heruntergeladen",
  upload: "hochgeladen",
  correct: "korrigiert",
  change_access: "Leserechte geändert",
  publish: "für alle geöffnet",
  reingest: "neu gelesen",
  delete: "gelöscht",
  write_file: "Datei abgelegt",
  share: "Antwort geteilt",
  open_share: "geteilte Antwort geöffnet",
  revoke_share: "Freigabe beendet",
  erase_person: "Person gelöscht",
  read_audit: "Protokoll gelesen",
  refused: "abgelehnt",
};

const MEASURES: Record<keyof QualityMeasures, string> = {
  click_through_rate: "Antworten mit geöffneter Quelle",
  answers_with_figures: "Antworten mit Abbildungen, wo es welche gibt",
  plan_completion: "erledigte Schritte",
  clarification_rate: "Rückfragen",
  tool_success: "gelungene Werkzeugaufrufe",
  citation_accuracy: "belegte Zitate",
  abstention_rate: "Fragen ohne Antwort in den Dokumenten",
  failure_rate: "gescheiterte Fragen",
};

/** Includes advice for the owner, because the API's hint is English. */
const FAILURES: Record<NonNullable<DocumentView["failure"]>, string> = {
  damaged: "Die Datei ist beschädigt oder unvollständig. Speichern oder exportieren Sie sie neu.",
  empty: "Die Datei ist leer.",
  encrypted: "Die Datei ist mit einem Kennwort geschützt. Speichern Sie sie ohne Kennwort.",
  encrypted_or_old: "Die Datei ist mit einem Kennwort geschützt, oder ihr Format ist von vor 2007. Speichern Sie sie neu.",
  image_too_large: "Das Bild hat zu viele Bildpunkte. Verkleinern Sie es.",
  internal: "Beim Lesen ist ein Fehler aufgetreten. Nennen Sie dem Betreiber den Namen der Datei und die Uhrzeit.",
  no_cues: "Das Transkript hat keine lesbaren Zeitangaben. Exportieren Sie es als WebVTT oder SubRip.",
  service_failed: "Ein Dienst ist ausgefallen. Versuchen Sie es später noch einmal.",
  too_large: "Die Datei ist zu groß. Teilen Sie sie auf.",
  unsupported: "Dieser Dateityp wird nicht unterstützt.",
  wrong_suffix: "Der Inhalt der Datei passt nicht zu ihrer Endung.",
};

/** By error code. Details remain in the API's words. */
const ERRORS: Record<string, string> = {
  AccessDeniedError: "Das dürfen Sie nicht.",
  BudgetExceededError: "Das Budget dieser Frage ist verbraucht.",
  ConflictError: "Das geht gerade nicht. Laden Sie neu und versuchen Sie es dann noch einmal.",
  DailyLimitError: "Ihr Tageslimit ist erreicht.",
  DocumentNotFoundError: "Dieses Dokument gibt es nicht, oder Sie dürfen es nicht lesen.",
  InternalError: "Interner Fehler. Versuchen Sie es noch einmal.",
  NetworkError: "Ein Dienst ist gerade nicht erreichbar. Versuchen Sie es gleich noch einmal.",
  NotFoundError: "Das gibt es nicht (mehr), oder Sie dürfen es nicht sehen.",
  PageImportError:
    "Diese Seite lässt sich nicht importieren: Sie ist nicht erreichbar, enthält keinen Text, oder die Website erlaubt es nicht. " +
    "Speichern Sie sie und laden Sie die Datei hoch.",
  PayloadTooLargeError: "Das ist zu groß.",
  RateLimitError: "Ein Dienst ist überlastet. Versuchen Sie es gleich noch einmal.",
  TimeoutError: "Ein Dienst hat zu langsam geantwortet. Versuchen Sie es gleich noch einmal.",
  ...FAILURES,
  TooManyRunsError: "Zu viele Ihrer Fragen sind gerade in Arbeit.",
};

export const CODES = { REASONS, ACTIONS, MEASURES, ERRORS, FAILURES };
