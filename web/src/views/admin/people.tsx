// Usage and limits of the users active today, or of those found by name.
import { useEffect, useState } from "preact/hooks";
import { read } from "../../api/request";
import type { PersonList, PersonUse } from "../../api/types";
import { wordsOf } from "../../stores/notices";
import { bytes, language, t, tOf } from "../../words/words";
import { Table } from "./table";

const SEARCH_DELAY_MS = 300;

export function People() {
  const [isOpen, setOpen] = useState(false);
  const [words, setWords] = useState("");
  const [people, setPeople] = useState<readonly PersonUse[] | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    if (!isOpen) return;
    let isWanted = true;
    const look = () =>
      read<PersonList>(`/api/users?${new URLSearchParams(words.trim() ? { q: words.trim() } : {})}`).then(
        (list) => isWanted && (setPeople(list.people), setError("")),
        (failed) => isWanted && setError(wordsOf(failed)),
      );
    const timer = setTimeout(look, words ? SEARCH_DELAY_MS : 0);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [isOpen, words]);
  const resources = people?.find((one) => one.today.length)?.today.map(({ resource }) => resource) ?? [];
  const rows = people?.map((one) => [
    <bdi title={one.user_id}>{one.name}</bdi>,
    ...resources.map((resource) => <Used use={one.today.find((use) => use.resource === resource)} />),
  ]);
  return (
    <details class="report" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t("admin.people")}</summary>
      <p class="quiet">{t("admin.peopleText")}</p>
      <input type="search" aria-label={t("admin.searchPeople")} placeholder={t("admin.searchPeople")} value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      {error && <p role="alert">{error}</p>}
      {rows ? <Table name={t("admin.people")} head={[t("admin.who"), ...resources.map((one) => tOf("use", one))]} rows={rows} /> : !error && <p class="quiet">{t("loading")}</p>}
    </details>
  );
}

function Used({ use }: { use: PersonUse["today"][number] | undefined }) {
  if (!use) return <>–</>;
  const amount = (value: number) => (use.resource === "size_bytes" ? bytes(value) : value.toLocaleString(language.value, { maximumFractionDigits: 0 }));
  return (
    <span class="used">
      {amount(use.used)} <small class="quiet">/ {use.limit > 0 ? amount(use.limit) : t("admin.unlimited")}</small>
      {use.limit > 0 && <meter value={Math.min(use.used, use.limit)} max={use.limit} aria-hidden="true" />}
    </span>
  );
}
