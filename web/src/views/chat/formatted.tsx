// Renders our own Markdown to HTML for the clipboard. Elements are built and then serialised, so text cannot become
// markup.
import { Lexer, type Token } from "marked";
import { render } from "preact";
import { Block, type Context, type ExportedFigure } from "../../text/render";

export function formatted(title: string, markdown: string, figures: ReadonlyMap<string, ExportedFigure>): string {
  const context: Context = { known: new Set(), cite: () => <></>, place: (file) => file, open: () => null, caption: (text) => text, exported: figures };
  const page = document.createElement("div");
  render(
    <>
      <h2>{title}</h2>
      {(Lexer.lex(markdown) as Token[]).map((token, index) => (
        <Block key={index} token={token} context={context} />
      ))}
    </>,
    page,
  );
  return new XMLSerializer().serializeToString(page).replaceAll(" data-src=", " src=");
}
