// Renders Markdown tokens with an allow-list of elements; HTML strings are never used. Anything else, above all
// markup, is shown as plain text.
import type { Token, Tokens } from "marked";
import { Fragment, type ComponentChildren, type VNode } from "preact";
import { memo } from "../parts/memo";
import { Picture } from "../parts/picture";
import { BEFORE_MOMENT, pieces, places } from "./citations";
import { unescaped } from "./plain_text";

export interface Context {
  /** Numbers of the citations received up to now. */
  known: ReadonlySet<number>;
  cite(n: number): VNode;
  /** Renders a file that is cited without a number. */
  place(file: string, page: number | null): ComponentChildren;
  /** Returns a function that opens the page of a picture; null if the page is unknown. */
  open(path: string): (() => void) | null;
  /** Returns the caption to show for the description of a picture. */
  caption(text: string): string;
  /** For export: the answer's pictures by path. */
  exported?: ReadonlyMap<string, ExportedFigure>;
}

/** A picture for export as a data URI, empty if it is left out, and the link to its page. */
export interface ExportedFigure {
  uri: string;
  link: string;
}

const MAX_DEPTH = 20;
const FIGURE = /^\/api\/documents\/[\w-]+\/figures\/[\w.-]+$/;
const LINK = /^(https?:\/\/|mailto:)/i;

/** Renders one block. A block with the same identity is not rendered again. */
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
      // Answers are below a heading of the page.
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
  return joinTexts(tokens ?? []).map((token, index) => <Fragment key={index}>{span(token, context, depth + 1)}</Fragment>);
}

/** Joins adjacent text tokens, because a reference may span several. */
function joinTexts(tokens: Token[]): Token[] {
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
  const exported = context.exported?.get(token.href);
  // The page's policy forbids data URIs, so `formatted` renames the attribute in the result.
  if (exported) return <a href={exported.link}>{exported.uri ? <img data-src={exported.uri} alt={token.text} /> : token.text}</a>;
  // Only our own picture URLs are loaded: a foreign URL would reveal that the answer is being read.
  if (!FIGURE.test(token.href)) return token.raw;
  const open = context.open(token.href);
  const caption = context.caption(token.text);
  const image = <Picture key={token.href} path={token.href} alt={caption} />;
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
      <span class="caption">{caption}</span>
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
