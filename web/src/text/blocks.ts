// Markdown that grows, lexed block by block: what can no longer change is lexed once. Pure.
// All but the last two blocks of a text stay as they are, whatever follows them.
import { lexer, type Token } from "marked";

export interface Blocks {
  text: string;
  /** Blocks that stay, and how many characters of `text` they take. */
  settled: readonly Token[];
  settledChars: number;
  /** The last blocks, which the next characters may change. */
  tail: readonly Token[];
}

export const NO_BLOCKS: Blocks = { text: "", settled: [], settledChars: 0, tail: [] };
const OPEN = 2;

/** The blocks of `text`, with the work of `before` kept where `text` goes on with it. */
export function lexBlocks(before: Blocks, source: string): Blocks {
  const text = source.replace(/\r\n?/g, "\n");
  const base = text.startsWith(before.text) ? before : NO_BLOCKS;
  const fresh = lexer(text.slice(base.settledChars)) as Token[];
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
