// The beginning of a passage, shortened for a preview: paragraphs as plain text and tables as rows. Pure.
import { Lexer } from "marked";
import { plainText } from "./plain_text";
import { cellText, rowsOf, withoutHtmlTables } from "./tables";

export type Part = { text: string } | { rows: readonly (readonly string[])[] };

const MOST_CHARS = 300;
const MOST_ROWS = 4; // of one table, with its header

const NO_LINKS: ReadonlySet<string> = new Set();

/** Returns the first parts of a passage, about 300 characters in total. A table is cut between rows. */
export function excerptOf(passage: string): Part[] {
  const parts: Part[] = [];
  let left = MOST_CHARS;
  for (const block of blocksOf(withoutHtmlTables(passage))) {
    if (left <= 0) break;
    const part = block.isTable ? tablePart(block.text, left) : textPart(block.text, left);
    left -= lengthOf(part);
    if (lengthOf(part)) parts.push(part);
  }
  return parts;
}

/** Splits a passage into tables, whose lines begin with a bar, and the text between them. */
function blocksOf(passage: string): { isTable: boolean; text: string }[] {
  const blocks: { isTable: boolean; lines: string[] }[] = [];
  for (const line of passage.split("\n")) {
    const isTable = line.startsWith("|");
    const last = blocks.at(-1);
    if (last?.isTable === isTable) last.lines.push(line);
    else blocks.push({ isTable, lines: [line] });
  }
  return blocks.map(({ isTable, lines }) => ({ isTable, text: lines.join("\n") }));
}

function tablePart(text: string, most: number): Part {
  const rows = rowsOf(text).map((row) => row.map(([start, end]) => cellText(text.slice(start, end))));
  const shown: string[][] = [];
  let chars = 0;
  for (const row of rows.slice(0, MOST_ROWS)) {
    chars += row.join("").length;
    if (shown.length && chars > most) break;
    shown.push(row);
  }
  return { rows: shown };
}

function textPart(text: string, most: number): Part {
  const plain = plainText(Lexer.lex(text), NO_LINKS, "\n").trim();
  return { text: plain.length > most ? `${plain.slice(0, most).replace(/\s+\S*$/, "")} …` : plain };
}

function lengthOf(part: Part): number {
  return "text" in part ? part.text.length : part.rows.flat().join("").length;
}
