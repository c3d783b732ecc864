// Tokens of Markdown become elements by an allow-list; no HTML string exists anywhere. What is not in the list,
// markup above all, is shown as the text that it is.
import type { Token, Tokens } from "marked";
import { Fragment, type ComponentChildren, type VNode } from "preact";
import { memo } from "../parts/memo";
import { BEFORE_MOMENT, pieces, places } from "./citations";

export interface Context {
  /** Numbers of citations that are known by now. */
  known: ReadonlySet<number>;
  cite(n: number): VNode;
  /** Where a file is cited without a number. */
  place(file: string, page: number | null): ComponentChildren;
  /** Opens the page of a picture; null where it is not known. */
  open(path: string): (() => void) | null;
  /** For use elsewhere: pictures keep their addresses, as `data-src`, so that they are not loaded here. */
  outside?: boolean;
}

const MAX_DEPTH = 20;
const FIGURE = /^\/api\/documents\/[\w-]+\/figures\/[\w.-]+$/;
const LINK = /^(https?:\/\/|mailto:)/i;

/** One block. A block that stays the same object is not rendered again. */
export const Block = memo(function Block({ token, context }: { token: Token; context: Context }) {
  return <>{block(token, context, 0)}</>;
});

function block(token: Token, context: Context, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return token.raw;
  const inside = (tokens: Token[] | undefined) => blocks(tokens ?? [], context, depth + 1);
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading": {
      // An answer stands below a heading of the page.
      const Heading = `h${Math.min(6, (token as Tokens.Heading).depth + 2)}` as "h3";
      return <Heading>{inline(token.tokens, context, depth)}</Heading>;
    }
    case "paragraph":
      return <p>{inline(token.tokens, context, depth)}</p>;
    case "text":
      return token.tokens ? inline(token.tokens, context, depth) : words(token.text, context);
    case "blockquote":
      return <blockquote>{inside(token.tokens)}</blockquote>;
    case "list":
      return list(token as Tokens.List, context, depth);
    case "code":
      return (
        <pre tabIndex={0}>
          <code>{(token as Tokens.Code).text}</code>
        </pre>
      );
    case "table":
      return table(token as Tokens.Table, context, depth);
    case "hr":
      return <hr />;
    default:
      return <p>{token.raw}</p>;
  }
}

function blocks(tokens: Token[], context: Context, depth: number): ComponentChildren {
  return tokens.map((token, index) => <Fragment key={index}>{block(token, context, depth)}</Fragment>);
}

function list(token: Tokens.List, context: Context, depth: number): VNode {
  const items = token.items.map((item, index) => <li key={index}>{blocks(item.tokens, context, depth + 1)}</li>);
  return token.ordered ? <ol start={Number(token.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function table(token: Tokens.Table, context: Context, depth: number): VNode {
  const cell = (one: Tokens.TableCell) => inline(one.tokens, context, depth);
  return (
    <div class="scroll" tabIndex={0} role="group">
      <table>
        <thead>
          <tr>
            {token.header.map((one, index) => (
              <th key={index} scope="col">
                {cell(one)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, index) => (
            <tr key={index}>
              {row.map((one, column) => (
                <td key={column}>{cell(one)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inline(tokens: Token[] | undefined, context: Context, depth: number): ComponentChildren {
  if (depth > MAX_DEPTH) return (tokens ?? []).map((token) => token.raw).join("");
  return merged(tokens ?? []).map((token, index) => <Fragment key={index}>{span(token, context, depth + 1)}</Fragment>);
}

/** Neighbouring texts as one: a place in the text may lie across them. */
function merged(tokens: Token[]): Token[] {
  const found: Token[] = [];
  for (const token of tokens) {
    const last = found.at(-1);
    const isText = (one: Token | undefined) => (one?.type === "text" && !("tokens" in one && one.tokens)) || one?.type === "escape";
    const isMoment = token.type === "link" && last && isText(last) && BEFORE_MOMENT.test(plain(last));
    if (last && isText(last) && (isText(token) || isMoment)) {
      const text = plain(last) + (isMoment ? token.raw : plain(token));
      found[found.length - 1] = { ...last, type: "text", raw: last.raw + token.raw, text } as Token;
    } else found.push(token);
  }
  return found;
}

const plain = (token: Token) => (token as Tokens.Text).text;

function span(token: Token, context: Context, depth: number): ComponentChildren {
  const inside = () => inline("tokens" in token ? token.tokens : [], context, depth);
  switch (token.type) {
    case "text":
    case "escape":
      return "tokens" in token && token.tokens ? inside() : words(plain(token), context);
    case "strong":
      return <strong>{inside()}</strong>;
    case "em":
      return <em>{inside()}</em>;
    case "del":
      return <del>{inside()}</del>;
    case "codespan":
      return <code>{(token as Tokens.Codespan).text}</code>;
    case "br":
      return <br />;
    case "link":
      return link(token as Tokens.Link, inside());
    case "image":
      return picture(token as Tokens.Image, context);
    default:
      return token.raw;
  }
}

function link(token: Tokens.Link, inside: ComponentChildren): ComponentChildren {
  if (!LINK.test(token.href)) return token.raw;
  return (
    <a href={token.href} target="_blank" rel="noopener noreferrer">
      {inside}
    </a>
  );
}

function picture(token: Tokens.Image, context: Context): ComponentChildren {
  if (context.outside && LINK.test(token.href)) return <img data-src={token.href} alt={token.text} />;
  // Pictures come from our own addresses alone: one of elsewhere would tell that somebody reads this.
  if (!FIGURE.test(token.href)) return token.raw;
  const open = context.open(token.href);
  const image = <img src={token.href} alt={token.text} loading="lazy" decoding="async" />;
  return (
    <span class="figure">
      {open ? (
        <button type="button" class="figure-button" onClick={open}>
          {image}
        </button>
      ) : (
        <a href={token.href} target="_blank" rel="noopener">
          {image}
        </a>
      )}
      <span class="caption">{token.text}</span>
    </span>
  );
}

function words(text: string, context: Context): ComponentChildren {
  return pieces(unescaped(text), context.known).map((piece, index) =>
    "n" in piece ? <Fragment key={index}>{context.cite(piece.n)}</Fragment> : placed(piece.text, context),
  );
}

function placed(text: string, context: Context): ComponentChildren {
  return places(text).map((part, index) =>
    "file" in part ? <Fragment key={index}>{context.place(part.file, part.page)}</Fragment> : part.text,
  );
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u00a0", "#39": "'" };

/** The lexer leaves references to characters as they are; HTML would have resolved them. */
function unescaped(text: string): string {
  return text.includes("&") ? text.replace(/&(amp|lt|gt|quot|nbsp|#39);/g, (_, name: string) => ENTITIES[name]!) : text;
}
