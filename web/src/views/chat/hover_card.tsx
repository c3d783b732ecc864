// Shows the quotation of the hovered or focused citation. It is part of the answer, so this does not count as
// opening the source.
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Citation } from "../../api/types";
import { Quote } from "../sources/quote";
import { isProved, otherSheets, placeOf, proofOf } from "./chip";

interface Card {
  citation: Citation;
  /** Distinguishes the document from others with the same name. */
  label?: string;
  at: HTMLElement;
}

const card = signal<Card | null>(null);
const DELAY_MS = 120;
const GAP_PX = 8;
let timer = 0;

export function showCard(next: Card): void {
  clearTimeout(timer);
  timer = window.setTimeout(() => (card.value = next), DELAY_MS);
}

export function hideCard(): void {
  clearTimeout(timer);
  card.value = null;
}

export function HoverCard() {
  const element = useRef<HTMLDivElement>(null);
  const shown = card.value;
  useLayoutEffect(() => {
    if (!shown || !element.current) return;
    const chip = shown.at.getBoundingClientRect();
    const { offsetWidth, offsetHeight } = element.current;
    const isBelow = chip.top < offsetHeight + 2 * GAP_PX;
    const left = Math.min(Math.max(GAP_PX, chip.left - offsetWidth / 2), innerWidth - offsetWidth - GAP_PX);
    element.current.style.left = `${left}px`;
    element.current.style.top = `${isBelow ? chip.bottom + GAP_PX : chip.top - offsetHeight - GAP_PX}px`;
  }, [shown]);
  if (!shown) return null;
  const { citation, label } = shown;
  return (
    <div class="hover-card" ref={element} aria-hidden="true">
      <div class="hover-card-head">
        <bdi>{citation.filename}</bdi>
        <span>{[label, placeOf(citation)].filter(Boolean).join(", ")}</span>
      </div>
      {otherSheets(citation).map((sheet) => (
        <bdi key={sheet}>{sheet}</bdi>
      ))}
      {citation.quote && (
        <blockquote>
          <Quote text={citation.quote} />
        </blockquote>
      )}
      <div class={isProved(citation) ? "proof" : "proof unproved"}>{proofOf(citation)}</div>
    </div>
  );
}
