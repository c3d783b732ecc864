// Who may read a document, by names where the page knows them. It holds for the next question.
import { useState } from "preact/hooks";
import { send } from "../../api/request";
import type { DocumentDetail } from "../../api/types";
import { IconButton } from "../../parts/button";
import { notify, wordsOf } from "../../stores/notices";
import { audiences, labelOf, nameOfPrincipal, principalOf } from "../../stores/audiences";
import { me } from "../../stores/session";
import { t } from "../../words/words";
import type { Known } from "./document_panel";

export function AccessForm({ known, onChange }: { known: Known; onChange(known: Known): void }) {
  const [acl, setAcl] = useState(known.detail.acl ?? []);
  const [added, setAdded] = useState("");
  const [error, setError] = useState("");
  const save = async (next: readonly string[]) => {
    try {
      const path = `/api/documents/${known.detail.doc_id}/access`;
      const response = await send("PUT", path, { body: { acl: next }, headers: { "if-match": known.etag } });
      setAcl(next);
      setError("");
      onChange({ detail: (await response.json()) as DocumentDetail, etag: response.headers.get("etag") ?? "" });
      notify(t("saved"));
    } catch (failed) {
      setError(wordsOf(failed));
    }
  };
  const add = (event: Event) => {
    event.preventDefault();
    if (!added.trim()) return;
    void save([...new Set([...acl, principalOf(added.trim())])]);
    setAdded("");
  };
  const offered = audiences.value.filter((one) => one.kind !== "person" && !acl.includes(one.principal));
  return (
    <form class="access" onSubmit={add}>
      <h3>{t("readers")}</h3>
      <ul class="scoped">
        <li class="fixed">{known.detail.owner_id === me.value?.user_id ? t("youOwn") : `${t("owner")}: ${known.detail.owner_id ?? "–"}`}</li>
        {acl
          .filter((one) => one !== known.detail.owner_id)
          .map((one) => (
            <li key={one}>
              <bdi>{nameOfPrincipal(one)}</bdi>
              <IconButton icon="close" name={`${t("remove")}: ${nameOfPrincipal(one)}`} onClick={() => save(acl.filter((other) => other !== one))} />
            </li>
          ))}
      </ul>
      <div class="row">
        <input
          list="audiences"
          aria-label={t("addReader")}
          placeholder={t("addReader")}
          value={added}
          onInput={(event) => setAdded(event.currentTarget.value)}
        />
        <datalist id="audiences">
          {offered.map((one) => (
            <option key={one.principal} value={labelOf(one)} />
          ))}
        </datalist>
        <button type="submit" class="button" disabled={!added.trim()}>
          {t("add")}
        </button>
      </div>
      {error && <p role="alert">{error}</p>}
    </form>
  );
}
