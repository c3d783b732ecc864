// Renders Markdown tokens as plain text, for e-mails and other places without formatting. Pure.
import type { Token, Tokens } from "marked";

/** Returns the text of blocks. The targets of links are added, except those that are `listed` elsewhere. */
export function plainText(tokens: readonly Token[], listed: ReadonlySet<string>, gap = "\n\n"): string {
  return tokens
    .map((token) => block(token, listed))
    .filter(Boolean)
    .join(gap);
}

function block(token: Token, listed: ReadonlySet<string>): string {
  switch (token.type) {
    case "space":
    case "def":
    case "hr":
      return "";
    case "code":
      return (token as Tokens.Code).text;
    case "blockquote":
      return plainText(token.tokens ?? [], listed);
    case "list":
      return list(token as Tokens.List, listed);
    case "table": {
      const { header, rows } = token as Tokens.Table;
      return [header, ...rows].map((row) => row.map((cell) => inline(cell.tokens, listed)).join("\t")).join("\n");
    }
    default:
      return "tokens" in token && token.tokens ? inline(token.tokens, listed) : unescaped("text" in token ? String(token.text) : token.raw);
  }
}

function list({ items, ordered, start }: Tokens.List, listed: ReadonlySet<string>): string {
  const sign = (index: number) => (ordered ? `${(Number(start) || 1) + index}.` : "-");
  return items.map((item, index) => `${sign(index)} ${plainText(item.tokens, listed, "\n").replaceAll("\n", "\n  ")}`).join("\n");
}

function inline(tokens: readonly Token[], listed: ReadonlySet<string>): string {
  return tokens.map((token) => span(token, listed)).join("");
}

function span(token: Token, listed: ReadonlySet<string>): string {
  if (token.type === "br") return "\n";
  if (token.type === "image") return `[${unescaped((token as Tokens.Image).text)}]`;
  if (!("tokens" in token) || !token.tokens) return unescaped("text" in token ? String(token.text) : token.raw);
  const text = inline(token.tokens, listed);
  const target = token.type === "link" ? (token as Tokens.Link).href : "";
  return !target || listed.has(target) || text === target ? text : `${text} (${target})`;
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0", "#39": "'" };

/** Decodes character references, which the lexer leaves unchanged. */
export function unescaped(text: string): string {
  return text.includes("&") ? text.replace(/&(amp|lt|gt|quot|nbsp|#39);/g, (_, name: string) => ENTITIES[name]!) : text;
}
