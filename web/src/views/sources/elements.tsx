// Renders a document's elements with the cited words marked. All content is rendered as plain text.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { TextMark, ViewedElement } from "../../api/types";
import { Picture } from "../../parts/picture";
import { rowsOf, type Span } from "../../text/tables";
import { moment, t } from "../../words/words";

/** Scrolls to the marks once, when they appear. */
export function Elements({ elements, isScrolled = false }: { elements: readonly ViewedElement[]; isScrolled?: boolean }) {
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isScrolled) root.current?.querySelector("mark")?.scrollIntoView({ block: "center" });
  }, [elements, isScrolled]);
  return (
    <div class="elements" ref={root}>
      {elements.map((element, index) => (
        <Piece key={index} element={element} />
      ))}
    </div>
  );
}

function Piece({ element }: { element: ViewedElement }) {
  const text = marked(element.text, 0, element.text.length, element.marks);
  const at = element.start_seconds === null ? null : <small class="moment">{moment(element.start_seconds)}</small>;
  switch (element.kind) {
    case "heading":
      return (
        <p class={`heading level-${element.level ?? 3}`} role="heading" aria-level={Math.min(6, (element.level ?? 3) + 2)}>
          {text}
        </p>
      );
    case "list_item":
      return <p class="item">{text}</p>;
    case "code":
      return <pre tabIndex={0}>{text}</pre>;
    case "table":
      return <Table element={element} />;
    case "figure":
      return <Figure element={element} />;
    default:
      return (
        <p>
          {at} {text}
        </p>
      );
  }
}

function Figure({ element }: { element: ViewedElement }) {
  const figure = element.figure;
  if (!figure) return element.text ? <p>{element.text}</p> : null;
  return (
    <figure>
      <Picture key={figure.path} path={figure.path} alt={figure.caption ?? ""} size={{ width: figure.width_px, height: figure.height_px }} />
      {figure.caption && (
        <figcaption>
          {figure.caption}
          {figure.by_model && <small> {t("byModel")}</small>}
        </figcaption>
      )}
    </figure>
  );
}

function Table({ element }: { element: ViewedElement }) {
  const [head, ...rows] = rowsOf(element.text);
  const cells = (row: readonly Span[], Cell: "th" | "td") =>
    row.map(([start, end], index) => (
      <Cell key={index} scope={Cell === "th" ? "col" : undefined}>
        {marked(element.text, start, end, element.marks)}
      </Cell>
    ));
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={t("table")}>
      <table>
        <thead>
          <tr>{cells(head ?? [], "th")}</tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>{cells(row, "td")}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Renders part of a text with the words inside `marks` highlighted. */
export function marked(text: string, start: number, end: number, marks: readonly TextMark[]): ComponentChildren {
  const shown: ComponentChildren[] = [];
  let at = start;
  for (const mark of marks) {
    const from = Math.max(mark.start, at);
    const to = Math.min(mark.end, end);
    if (from >= to) continue;
    shown.push(text.slice(at, from), <mark key={from}>{text.slice(from, to)}</mark>);
    at = to;
  }
  shown.push(text.slice(at, end));
  return shown;
}
