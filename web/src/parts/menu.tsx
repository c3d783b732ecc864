// A button that opens a short list of commands. Arrow keys move the focus; Escape or a click outside closes it.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { IconButton } from "./button";
import { Icon, type IconName } from "./icons";

export interface Command {
  name: string;
  act(): void;
  isDanger?: boolean;
  /** A second line below the name. */
  about?: string;
  /** Whether a radio item is checked. */
  isChosen?: boolean;
}

interface Props {
  name: string;
  commands: Command[];
  icon?: IconName;
  /** Shown on the button next to its icon. */
  label?: string;
}

export function Menu({ name, commands, icon = "more", label }: Props) {
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const items = () => [...root.current!.querySelectorAll<HTMLButtonElement>("[role^=menuitem]")];
  useLayoutEffect(() => {
    if (!isOpen) return;
    items()[0]?.focus();
    const outside = (event: Event) => root.current?.contains(event.target as Node) || setOpen(false);
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [isOpen]);
  const close = () => {
    setOpen(false);
    root.current!.querySelector("button")!.focus();
  };
  const onKey = (event: KeyboardEvent) => {
    if (!isOpen) return;
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLButtonElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) all[(at + step + all.length) % all.length]?.focus();
    else if (event.key === "Escape") close();
    else if (event.key === "Tab") return setOpen(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="menu" ref={root} onKeyDown={onKey}>
      {label ? (
        <button type="button" class="toggle" title={name} aria-haspopup="menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Icon name={icon} /> {label}
        </button>
      ) : (
        <IconButton icon={icon} name={name} aria-haspopup="menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)} />
      )}
      {isOpen && (
        <div class="menu-list" role="menu" aria-label={name}>
          {commands.map((command) => (
            <button
              key={command.name}
              type="button"
              role={command.isChosen === undefined ? "menuitem" : "menuitemradio"}
              aria-checked={command.isChosen}
              tabIndex={-1}
              class={command.isDanger ? "danger-text" : ""}
              onClick={() => (close(), command.act())}
            >
              {command.name}
              {command.about && <small>{command.about}</small>}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
