// Shows and edits who has access to a document. People and groups are picked from the directory; a change applies
// from the next question.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Audience, DocumentDetail } from "../../api/types";
import { IconButton } from "../../parts/button";
import { notify, wordsOf } from "../../stores/notices";
import { audiences, labelOf, loadNames, nameOfPrincipal, ownAudiences, searchDirectory } from "../../stores/audiences";
import { me } from "../../stores/session";
import { t } from "../../words/words";
import { saveKnown, type Known } from "./document_panel";

const SEARCH_DELAY_MS = 200;
const DOUBLE_CLICK_MS = 600;
const SAME_PLACE_PX = 10;

export function AccessForm({ known, onChange }: { known: Known; onChange(known: Known): void }) {
  const { detail } = known;
  const acl = detail.acl ?? [];
  const [error, setError] = useState("");
  useEffect(() => void loadNames([...acl, detail.owner_id ?? ""]).catch(() => {}), [acl.join("\n")]);
  const save = async (next: readonly string[]) => {
    try {
      const isSame = (now: DocumentDetail) => now.acl?.join("\n") === acl.join("\n");
      onChange(await saveKnown(known, { method: "PUT", path: "/access", body: { acl: next }, isSame, onConflict: onChange }));
      setError("");
      notify(t("saved"));
      return true;
    } catch (failed) {
      setError(wordsOf(failed));
      return false;
    }
  };
  const others = acl.filter((one) => one !== detail.owner_id);
  return (
    <section class="access" aria-labelledby="access-title">
      <h3 id="access-title">{t("readers")}</h3>
      <ul class="readers">
        <Reader name={detail.owner_id === me.value?.user_id ? t("you") : nameOfPrincipal(detail.owner_id ?? "–")} kind={t("owner")} />
        {others.map((one) => (
          <Reader key={one} name={nameOfPrincipal(one)} kind={kindOf(one)} onRemove={() => save(acl.filter((other) => other !== one))} />
        ))}
      </ul>
      {!others.length && <p class="quiet small">{t("onlyOwner")}</p>}
      <Picker taken={acl} onPick={(principal) => save([...acl, principal])} />
      {error && <p role="alert">{error}</p>}
    </section>
  );
}

/** Returns the kind of principal that an access list entry names. */
export function kindOf(principal: string): string {
  const kind = principal === "*" ? "everyone" : principal.startsWith("org:") ? "organisation" : audiences.value[principal]?.kind;
  return kind ? t(`by.${kind}`) : "";
}

function Reader({ name, kind, onRemove }: { name: string; kind: string; onRemove?(): void }) {
  return (
    <li>
      <span>
        <bdi>{name}</bdi> <small class="quiet">{kind}</small>
      </span>
      {onRemove && <IconButton icon="close" name={`${t("remove")}: ${name}`} onClick={onRemove} />}
    </li>
  );
}

interface PickerProps {
  taken: readonly string[];
  onPick(principal: string): Promise<boolean>;
  name?: string;
  /** Whether a dialog with the picker opens with the focus in its field. */
  autofocus?: boolean;
  /** Adds a button "Done", which picks the text in the field and then calls this. */
  onDone?(): void;
}

/** Whether an access list entry stands for everyone or for a whole organisation. */
const isWide = (principal: string) => principal === "*" || principal.startsWith("org:");

/** A search field for principals. Free text can be added as well; the server rejects unknown principals. */
export function Picker({ taken, onPick, name = t("addReader"), autofocus = false, onDone }: PickerProps) {
  const [wide, setWide] = useState(""); // an entry for everyone or an organisation, until the user confirms it
  const [words, setWords] = useState("");
  const [found, setFound] = useState<readonly Audience[]>([]);
  const [at, setAt] = useState(-1);
  const isTaken = ({ principal }: Audience) => taken.includes(principal) || principal === me.value?.user_id;
  const isFree = (one: Audience) => !isTaken(one) && one.kind !== "person";
  const offered = words.trim() ? found.filter((one) => !isTaken(one)) : [];
  useEffect(() => {
    if (!words.trim()) return setFound([]);
    let isWanted = true;
    const look = () => searchDirectory(words.trim()).then((list) => isWanted && (setFound(list), setAt(-1)), () => {});
    const timer = setTimeout(look, SEARCH_DELAY_MS);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [words]);
  const grant = async (principal: string) => {
    const isAccepted = await onPick(principal);
    if (isAccepted) setWords("");
    return isAccepted;
  };
  const pick = async (principal: string) => {
    if (!isWide(principal)) return grant(principal);
    setWide(principal);
    return false;
  };
  // The list closes under the pointer: the second click of a double click would hit a button below it.
  const pressed = useRef<PointerEvent | null>(null);
  const isSecondClick = (event: MouseEvent) => {
    const first = pressed.current;
    return (
      first !== null &&
      event.timeStamp - first.timeStamp < DOUBLE_CLICK_MS &&
      Math.hypot(event.clientX - first.clientX, event.clientY - first.clientY) < SAME_PLACE_PX
    );
  };
  const pickInList = (event: PointerEvent, principal: string) => {
    event.preventDefault();
    if (isSecondClick(event)) return;
    pressed.current = event;
    void pick(principal);
  };
  const pickButton = (event: MouseEvent, principal: string) => {
    if (!isSecondClick(event)) void pick(principal);
  };
  const onKey = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && offered.length) {
      event.preventDefault();
      setAt((at + step + offered.length) % offered.length);
    } else if (event.key === "Escape" && offered.length) {
      event.stopPropagation();
      setFound([]);
    }
  };
  /** Picks the highlighted entry, or the only match. */
  const pickWords = async (text: string) => {
    if (offered[at]) return pick(offered[at].principal);
    const matches = (await searchDirectory(text).catch(() => [])).filter((one) => !isTaken(one));
    return pick(matches.length === 1 ? matches[0]!.principal : text);
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (words.trim()) void pickWords(words.trim());
  };
  const done = async () => {
    if (!words.trim() || (await pickWords(words.trim()))) onDone!();
  };
  return (
    <form class="picker" onSubmit={submit}>
      <div class="row">
        <input
          role="combobox"
          autofocus={autofocus}
          aria-label={name}
          aria-expanded={offered.length > 0}
          aria-controls="picker-list"
          aria-activedescendant={offered[at] && `picker-${at}`}
          autocomplete="off"
          placeholder={name}
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
          onKeyDown={onKey}
        />
        <button type="submit" class="button" disabled={!words.trim()}>
          {t("add")}
        </button>
      </div>
      <ul id="picker-list" class="picker-list" role="listbox" aria-label={name} hidden={!offered.length}>
        {offered.map((one, index) => (
          <li
            key={one.principal}
            id={`picker-${index}`}
            role="option"
            aria-selected={index === at}
            onPointerDown={(event) => pickInList(event, one.principal)}
          >
            <bdi>{labelOf(one)}</bdi>{" "}
            <small class="quiet">{[t(`kind.${one.kind}`), one.detail].filter(Boolean).join(" · ")}</small>
          </li>
        ))}
      </ul>
      <div class="button-row offered">
        {ownAudiences.value.filter(isFree).map((one) => (
          <button key={one.principal} type="button" class="facet-value" onClick={(event) => pickButton(event, one.principal)}>
            + {labelOf(one)}
          </button>
        ))}
      </div>
      {wide && (
        <p class="wide-access" role="alert">
          {t(wide === "*" ? "wide.everyone" : "wide.organisation")}{" "}
          <button type="button" class="button" onClick={() => (setWide(""), void grant(wide))}>
            {t("wide.yes")}
          </button>{" "}
          <button type="button" class="button quiet-button" onClick={() => setWide("")}>
            {t("cancel")}
          </button>
        </p>
      )}
      {onDone && (
        <div class="dialog-foot">
          <button type="button" class="button primary" disabled={wide !== ""} onClick={done}>
            {t("done")}
          </button>
        </div>
      )}
    </form>
  );
}
