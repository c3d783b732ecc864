// A modal dialog. The browser traps the focus, closes the dialog on Escape and restores the focus.
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { wordsOf } from "../stores/notices";
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

/** Asks for confirmation of a destructive action. */
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

interface Wanted {
  title: string;
  /** The field's label. */
  name: string;
  action: string;
  value?: string;
  maxLength: number;
  onSave(value: string): Promise<unknown>;
  onClose(): void;
}

/** Asks for one line of text. If saving fails, the dialog stays open with the text. */
export function Prompt({ title, name, action, value = "", maxLength, onSave, onClose }: Wanted) {
  const [text, setText] = useState(value);
  const [error, setError] = useState("");
  const save = (event: Event) => {
    event.preventDefault();
    onSave(text.trim()).then(onClose, (failed) => setError(wordsOf(failed)));
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={save}>
        <label class="field">
          {name}
          <input autofocus value={text} maxLength={maxLength} required onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        {error && <p role="alert">{error}</p>}
        <footer class="dialog-foot">
          <button type="submit" class="button primary">
            {action}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
