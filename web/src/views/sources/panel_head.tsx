// The header of a side panel: links and the panel's width.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { IconButton } from "../../parts/button";
import { t } from "../../words/words";

/** Whether the panel covers the conversation, which makes a page easier to read. */
export const isWide = signal(false);

/** The role of a panel: at full width it is the main content. */
export const panelRole = () => (isWide.value ? "main" : "complementary");

/** The title of a panel. */
export function PanelTitle({ children }: { children: ComponentChildren }) {
  const Heading = isWide.value ? "h1" : "h2";
  return <Heading class="panel-title">{children}</Heading>;
}

/** Returns the focus to the element that opened a panel, once that is visible again. */
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
