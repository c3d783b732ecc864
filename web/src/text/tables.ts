// Markdown and HTML tables inside passages and quotations. Pure.

export type Span = readonly [start: number, end: number];
const RULE = /^\|(?: *:?-+:? *\|)+ *$/;

/** Returns the cells of a Markdown table as spans of its text, without the separator row. */
export function rowsOf(text: string): Span[][] {
  const rows: Span[][] = [];
  let start = 0;
  for (const line of text.split("\n")) {
    if (line.trim() && !RULE.test(line)) {
      const bars = [...line.matchAll(/(?<!\\)\|/g)].map((bar) => bar.index);
      rows.push(bars.slice(1).map((bar, index) => [start + bars[index]! + 1, start + bar] as const));
    }
    start += line.length + 1;
  }
  return rows;
}

/** Returns the text of a cell without escapes and padding. */
export function cellText(cell: string): string {
  return cell.trim().replaceAll("\\|", "|").replace(/<br *\/?>/gi, " ");
}

const HTML_ROW = /<tr\b[^<>]*>(.*?)<\/tr *>/gis;
const HTML_CELL = /<t[dh]\b[^<>]*>(.*?)(?=<t[dh]\b|<\/t[dh] *>|$)/gis;
const TABLE_TAG = /<\/?(?:table|caption|colgroup|col|thead|tbody|tfoot|tr|td|th)\b[^<>]*>/gi;

/** Replaces the rows of HTML tables with rows of Markdown. Other markup is not changed. */
export function withoutHtmlTables(text: string): string {
  if (!/<t(?:able|r|d|h)\b/i.test(text)) return text;
  const rows = text.replace(HTML_ROW, (_, row: string) => {
    const cells = [...row.matchAll(HTML_CELL)].map((cell) => cell[1]!.replace(/\s+/g, " ").trim().replaceAll("|", "\\|"));
    return `\n| ${cells.join(" | ")} |\n`;
  });
  return rows.replace(TABLE_TAG, "").replace(/\n\s*\n\|/g, "\n|");
}
