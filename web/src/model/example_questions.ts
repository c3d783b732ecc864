// Chooses example questions about documents, worded as a person would ask them. Pure.
import type { DocumentView } from "../api/types";
import type { Language } from "../words/words";

/** A question: complete, or as the key of a text with its values. */
export type Example =
  | { text: string }
  | { key: "suggest.change"; values: { title: string; from: string; to: string } }
  | { key: "suggest.compare"; values: { first: string; second: string } }
  | { key: "suggest.summary" | "suggest.points"; values: { title: string } }
  | { key: "suggest.topic"; values: { title: string; tag: string } };

const MOST = 4;
const MOST_FACTS = 2;

/** Returns at most four questions of different kinds. A fact is asked in the language of its document, and only if
 *  that is the page's language. Tags are used only if a model chose them. */
export function examplesFor(documents: readonly DocumentView[], language: Language, hasModel: boolean): Example[] {
  const alike = new Map<string, DocumentView[]>();
  for (const document of documents) {
    const key = nameOf(document).replace(/\d+/g, "#").toLowerCase();
    alike.set(key, [...(alike.get(key) ?? []), document]);
  }
  const groups = [...alike.values()];
  const pair = groups.find(([first, second]) => second && first!.filename !== second.filename);
  const single = onePerKind(groups.flatMap((group) => (group.length === 1 && isTelling(nameOf(group[0]!)) ? group : [])));
  const facts = documents.filter((document) => document.language === language).flatMap((document) => factAbout(document, language) ?? []);
  const asked = new Set(facts.slice(0, MOST_FACTS).map(({ document }) => document));
  const others = single.filter((document) => !asked.has(document)).map((document, index) => about(document, language, hasModel, index));
  const compared = pair ? [comparing(pair[0]!, pair[1]!, language)] : [];
  return [...facts.slice(0, MOST_FACTS).map(({ text }) => ({ text })), ...compared, ...others].slice(0, MOST);
}

const nameOf = (document: DocumentView) => document.title || document.filename;

/** Whether a title identifies a document, unlike "Memo". */
const isTelling = (title: string) => /\S\s+\S/.test(title.trim()) || /\.\w+$/.test(title);

/** Moves documents of a type that already occurred to the end, so that different kinds come first. */
function onePerKind(documents: readonly DocumentView[]): DocumentView[] {
  const seen = new Set<string>();
  const isNew = documents.map(({ document_type }) => seen.size !== seen.add(document_type ?? "").size);
  return [...documents.filter((_, index) => isNew[index]), ...documents.filter((_, index) => !isNew[index])];
}

/** Endings of English nouns that need no article: plurals, and words such as "maintenance". */
const NO_ARTICLE = /(?:[^s]s|ing|ion|ment|[ae]nce|ity|ety|cy|age|ship|leave)$/i;

function about(document: DocumentView, language: Language, hasModel: boolean, index: number): Example {
  const title = inSentence(nameOf(document), language);
  const isTopic = (tag: string) => !title.toLowerCase().includes(tag.toLowerCase()) && (language === "de" || NO_ARTICLE.test(tag));
  const tag = hasModel && document.tags.find(isTopic);
  if (tag) return { key: "suggest.topic", values: { title, tag: document.language === "de" ? capitalised(tag) : tag } };
  return { key: index % 2 ? "suggest.summary" : "suggest.points", values: { title } };
}

const YEAR = /(?<!\d)(?:19|20)\d\d(?!\d)/;

function comparing(one: DocumentView, other: DocumentView, language: Language): Example {
  const [first, second] = [one, other].sort((a, b) => a.filename.localeCompare(b.filename)) as [DocumentView, DocumentView];
  const [from, to] = [first, second].map(({ filename }) => YEAR.exec(filename)?.[0]);
  const title = nameOf(first);
  if (from && to && from !== to && title === nameOf(second)) return { key: "suggest.change", values: { title: inSentence(title, language), from, to } };
  return { key: "suggest.compare", values: { first: first.filename, second: second.filename } };
}

/** Words that make an English title a name that takes an article: "the Leave Policy". */
const KIND = /\b(?:agreement|brochure|budget|catalogue|contract|guide|guidelines|handbook|list|manual|memo|minutes|overview|plan|policy|presentation|procedure|proposal|report|review|rules|specification|statement|summary|terms)\b/i;

/** Returns a title as it would appear in a sentence: "A: Report" becomes "the A report". Other titles are quoted. */
function inSentence(title: string, language: Language): string {
  const calm = title === title.toUpperCase() ? capitalised(title.toLowerCase()) : title;
  if (language === "de") return `„${calm}“`;
  const [, owner, kind] = /^([^:]+): (\S+(?: \S+){0,2})$/.exec(calm) ?? [];
  const name = owner && kind && KIND.test(kind) ? `${owner} ${kind.toLowerCase()}` : calm;
  if (!KIND.test(name) || /[:;!?"“”]|\.\w+$/.test(name)) return `“${name}”`;
  return /^(?:the|a|an|our|my)\b/i.test(name) ? lowered(name) : `the ${name}`;
}

const capitalised = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const lowered = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

/** Beginnings of sentences that state a number, each with the question that such a sentence answers. */
const FACTS: Record<Language, readonly (readonly [RegExp, string])[]> = {
  en: [
    [/^In (\d{4}),? (the [^,;]{3,50}?) (was|is|were|are) \d/, "What $3 $2 in $1?"],
    [/^(The [^,;]{3,60}?) (was|is|were|are) (?:about |from |up to )?[\d€$£]/, "What $2 $1?"],
    [/^([A-Z][a-z]+ in \d{4}) (was|is) (?:about )?[\d€$£]/, "What $2 the $1?"],
    [/^(The [^,;]{3,50}?|[A-Z][a-z]+s) (is|are) due (?:within|on|by|in|after) /, "When $2 $1 due?"],
    [/^(The [^,;]{3,50}?) took (?:about )?\d/, "How long did $1 take?"],
    [/^(The [^,;]{3,50}?) (take|last)s (?:about )?\d/, "How long does $1 $2?"],
    [/^(The [^,;]{3,50}?) (weigh|cost)s (?:about )?[\d€$£]/, "How much does $1 $2?"],
  ],
  de: [
    [/^(D(?:er|ie|as) [^,;]{3,60}?) beträgt (?:etwa |rund )?\d/, "Wie hoch ist $1?"],
    [/^(D(?:er|ie|as) [^,;]{3,60}?) betrug (?:etwa |rund )?\d/, "Wie hoch war $1?"],
    [/^(D(?:er|ie|as) [^,;]{3,50}?) (dauerte?) (?:etwa |rund )?\d/, "Wie lange $2 $1?"],
    [/^(D(?:er|ie|as) [^,;]{3,50}?) (wiegt|kostet) (?:etwa |rund )?\d/, "Wie viel $2 $1?"],
  ],
};

/** Returns a question that a sentence of the document's summary answers with a number. */
function factAbout(document: DocumentView, language: Language): { document: DocumentView; text: string } | null {
  for (const sentence of (document.summary_brief ?? "").split(/(?<=[.!?])\s+/))
    for (const [pattern, question] of FACTS[language]) {
      const found = pattern.exec(sentence);
      if (found) return { document, text: question.replace(/\$(\d)/g, (_, part: string) => lowered(found[Number(part)]!)) };
    }
  return null;
}
