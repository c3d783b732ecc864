// Captions of figures in answers.
import { site } from "../../stores/session";
import { t } from "../../words/words";

/** A label that the document itself gives a figure, such as "Figure 2: Pressure curve". */
const LABEL = /^(?:Figure|Fig\.|Abbildung|Abb\.|Diagram|Chart)\s*\d+[^.\n]*/i;

/** Returns the caption to show. The stand-in has not seen the picture, so only the document's label is kept. */
export function captionOf(text: string): string {
  if (!site.value.stand_in) return text;
  return LABEL.exec(text)?.[0].trim() ?? t("figure");
}

const IMAGE = /!\[([^\]\n]*)\](?=\(\/api\/documents\/)/g;

/** Returns the Markdown of an answer with its captions replaced by the ones to show. */
export function withCaptions(markdown: string): string {
  return markdown.replace(IMAGE, (_, caption: string) => `![${captionOf(caption)}]`);
}
