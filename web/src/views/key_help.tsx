// The page's keyboard shortcuts.
import { Dialog } from "../parts/dialog";
import { t, type Key } from "../words/words";

const KEYS: [string, Key][] = [
  ["/", "keys.ask"],
  ["Enter", "keys.send"],
  ["Shift + Enter", "keys.line"],
  ["Ctrl + K", "keys.search"],
  ["1 – 9", "keys.choose"],
  ["[  ]", "keys.citations"],
  ["Esc", "keys.close"],
  ["?", "keys.help"],
];

export function KeyHelp({ onClose }: { onClose(): void }) {
  return (
    <Dialog title={t("keys.title")} onClose={onClose}>
      <dl class="keys">
        {KEYS.map(([key, about]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{t(about)}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
