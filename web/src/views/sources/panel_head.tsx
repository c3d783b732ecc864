// The head of a side panel: what leads on, and how wide the panel is.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { IconButton } from "../../parts/button";
import { t } from "../../words/words";

/** Whether the panel takes the conversation's room, too, so that a page can be read comfortably. */
export const isWide = signal(false);

/** The role of a panel: at full width it is what the page is about. */
export const panelRole = () => (isWide.value ? "main" : "complementary");

/** The title of what a panel shows. */
export function PanelTitle({ children }: { children: ComponentChildren }) {
  const Heading = isWide.value ? "h1" : "h2";
  return <Heading class="panel-title">{children}</Heading>;
}

/** Gives the focus back to what opened a panel, once that is shown again. */
export function focusSoon(element: HTMLElement | null): void {
  setTimeout(() => element?.focus({ preventScroll: true }));
}

export function PanelHead({ children, onClose }: { children?: ComponentChildren; onClose(): void }) {
  return (
    <header class="source-head">
      {children}
      <span class="grow" />
      <IconButton icon="wide" name={t("wide")} aria-pressed={isWide.value} onClick={() => (isWide.value = !isWide.value)} />
      <IconButton icon="close" name={t("close")} onClick={onClose} />
    </header>
  );
}
