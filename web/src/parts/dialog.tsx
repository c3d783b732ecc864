// A dialog over the page. The browser keeps the focus inside, closes it on Escape, and gives the focus back.
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../words/words";
import { IconButton } from "./button";

interface Props {
  title: string;
  onClose(): void;
  children: ComponentChildren;
  class?: string;
}

export function Dialog({ title, onClose, children, class: kind = "" }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const dialog = element.current!;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  const closeOutside = (event: MouseEvent) => event.target === element.current && onClose();
  return (
    <dialog ref={element} class={`dialog ${kind}`} aria-labelledby={id} onClose={onClose} onClick={closeOutside}>
      <div class="dialog-body">
        <header class="dialog-head">
          <h2 id={id}>{title}</h2>
          <IconButton icon="close" name={t("close")} onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

interface Question {
  title: string;
  text: string;
  action: string;
  onYes(): void;
  onClose(): void;
}

/** Asks before something is lost. */
export function Confirm({ title, text, action, onYes, onClose }: Question) {
  const yes = () => (onClose(), onYes());
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>
          {t("cancel")}
        </button>
        <button type="button" class="button danger" onClick={yes}>
          {action}
        </button>
      </footer>
    </Dialog>
  );
}
