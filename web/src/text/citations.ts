// Finds references to sources in an answer's text: `(Source: file.pdf, S. 3)[1]` or `[1]`; for recordings with a
// link to the moment: `(Source: talk.vtt, [01:23](...))[1]`. Pure.

export type Piece = { text: string } | { n: number };

const PLACE = /(?:\(Source: [^()\n]{1,900}(?:\([^()\n]{0,2000}\)[^()\n]{0,100}){0,9}\)\s?)?\[(\d{1,4})\]/g;

/** The text before the link to a moment, which the lexer emits as a separate link token. */
export const BEFORE_MOMENT = /\(Source: [^\n]{1,300}, $/;

const UNNUMBERED = /\(Source: ((?:[^()\n]|\([^()\n]{0,60}\)){1,300}?)(?:, S\. (\d{1,6}))?\)/g;

/** Splits off references without a number, below pictures: `(Source: file.pdf, S. 3)`; `page` may be null. */
export function places(text: string): ({ text: string } | { file: string; page: number | null })[] {
  const found: ({ text: string } | { file: string; page: number | null })[] = [];
  let end = 0;
  for (const place of text.matchAll(UNNUMBERED)) {
    if (place.index > end) found.push({ text: text.slice(end, place.index) });
    found.push({ file: place[1]!, page: place[2] ? Number(place[2]) : null });
    end = place.index + place[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end) });
  return found;
}

/** Splits the text at its references. `known` has the numbers of the answer's citations. */
export function pieces(text: string, known: ReadonlySet<number>): Piece[] {
  const found: Piece[] = [];
  let end = 0;
  for (const place of text.matchAll(PLACE)) {
    const n = Number(place[1]);
    if (!known.has(n)) continue;
    if (place.index > end) found.push({ text: text.slice(end, place.index) });
    found.push({ n });
    end = place.index + place[0].length;
  }
  if (end < text.length) found.push({ text: text.slice(end) });
  return found;
}

interface Source {
  filename: string;
  page_number: number | null;
  doc_id: string;
}

/** Returns the id of a file cited without a number: that of a source on the same page, else of any with its name. */
export function docIdOf(sources: readonly Source[], file: string, page: number | null): string | undefined {
  const named = sources.filter((one) => one.filename === file);
  return (named.find((one) => one.page_number === page) ?? named[0])?.doc_id;
}
