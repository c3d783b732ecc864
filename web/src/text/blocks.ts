// Lexes growing Markdown incrementally: settled blocks are lexed once. Pure. All but the last two blocks are
// settled, whatever text is appended.
import { Lexer, type Token } from "marked";

export interface Blocks {
  text: string;
  /** Settled blocks, and how many characters of `text` they cover. */
  settled: readonly Token[];
  settledChars: number;
  /** The last blocks, which appended text may change. */
  tail: readonly Token[];
}

export const NO_BLOCKS: Blocks = { text: "", settled: [], settledChars: 0, tail: [] };
const OPEN = 2;

/** Lexes `source` and reuses the settled blocks of `before` if it extends that text. */
export function lexBlocks(before: Blocks, source: string): Blocks {
  const text = source.replace(/\r\n?/g, "\n");
  const base = text.startsWith(before.text) ? before : NO_BLOCKS;
  const fresh = Lexer.lex(text.slice(base.settledChars)) as Token[];
  const solid = fresh.flatMap((token, index) => (token.type === "space" ? [] : [index]));
  const cut = solid.length > OPEN ? solid[solid.length - OPEN]! : 0;
  const done = fresh.slice(0, cut);
  return {
    text,
    settled: done.length ? [...base.settled, ...done] : base.settled,
    settledChars: base.settledChars + done.reduce((sum, token) => sum + token.raw.length, 0),
    tail: fresh.slice(cut),
  };
}
