// Shares an answer: which documents a reader must be able to open, with whom and for how long, and the active shares.
import { useEffect, useState } from "preact/hooks";
import { change, read } from "../../api/request";
import type { Share, ShareList } from "../../api/types";
import { Dialog } from "../../parts/dialog";
import { loadNames, nameOfPrincipal } from "../../stores/audiences";
import { useLabels } from "../../stores/namesakes";
import { notify, wordsOf } from "../../stores/notices";
import { day, t, tOf } from "../../words/words";
import { Picker } from "./access_form";

const DAYS = [7, 30, 90];

export function ShareDialog({ runId, onClose }: { runId: string; onClose(): void }) {
  const [list, setList] = useState<ShareList | null>(null);
  const [audience, setAudience] = useState<readonly string[]>([]);
  const [days, setDays] = useState(30);
  const [error, setError] = useState("");
  const path = `/api/runs/${runId}/shares`;
  const load = async () => {
    const found = await read<ShareList>(path);
    await loadNames(found.shares.flatMap((one) => one.audience)).catch(() => {});
    setList(found);
  };
  const attempt = (work: () => Promise<void>) => work().then(() => setError(""), (failed) => setError(wordsOf(failed)));
  useEffect(() => void attempt(load), [runId]);
  const share = async () => {
    await change<Share>("POST", path, { audience, days });
    setAudience([]);
    await load();
  };
  const revoke = async (one: Share) => {
    await change("DELETE", `${path}/${one.share_id}`);
    await load();
  };
  const add = async (principal: string) => {
    await loadNames([principal]).catch(() => {});
    setAudience([...audience, principal]);
    return true;
  };
  const isPossible = list !== null && !list.obstacles.length;
  return (
    <Dialog title={t("share.title")} onClose={onClose}>
      <p class="quiet">{t("share.text")}</p>
      {error && <p role="alert">{error}</p>}
      {!list && !error && <p class="quiet">{t("loading")}</p>}
      {list?.obstacles.map((obstacle) => <p key={obstacle}>{tOf("obstacle", obstacle)}</p>)}
      {list !== null && list.documents.length > 0 && <Needed list={list} />}
      {isPossible && (
        <>
          <ul class="readers">
            {audience.map((one) => (
              <li key={one}>
                <bdi>{nameOfPrincipal(one)}</bdi>
                <button type="button" class="button" onClick={() => setAudience(audience.filter((other) => other !== one))}>
                  {t("remove")}
                </button>
              </li>
            ))}
          </ul>
          <Picker taken={audience} onPick={add} />
          <label class="field">
            {t("share.days")}
            <select value={days} onChange={(event) => setDays(Number(event.currentTarget.value))}>
              {DAYS.map((count) => (
                <option key={count} value={count}>
                  {t("share.dayCount", { count })}
                </option>
              ))}
            </select>
          </label>
          <button type="button" class="button primary" disabled={!audience.length} onClick={() => attempt(share)}>
            {t("share.create")}
          </button>
        </>
      )}
      {list !== null && list.shares.length > 0 && <Active list={list} onRevoke={(one) => attempt(() => revoke(one))} />}
    </Dialog>
  );
}

function Needed({ list }: { list: ShareList }) {
  const labels = useLabels(list.documents);
  return (
    <section aria-labelledby="share-needed">
      <h3 id="share-needed">{t("share.documents")}</h3>
      <ul>
        {list.documents.map((one) => (
          <li key={one.doc_id}>
            <bdi>{one.filename || t("share.closed")}</bdi>
            {labels.has(one.doc_id) && <span class="quiet"> {labels.get(one.doc_id)}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Active({ list, onRevoke }: { list: ShareList; onRevoke(share: Share): void }) {
  const copy = async (one: Share) => {
    await navigator.clipboard.writeText(location.origin + one.url);
    notify(t("share.copied"));
  };
  return (
    <section aria-labelledby="share-active">
      <h3 id="share-active">{t("share.active")}</h3>
      <ul class="readers">
        {list.shares.map((one) => (
          <li key={one.share_id} data-share={one.share_id}>
            <span>
              <bdi>{one.audience.map(nameOfPrincipal).join(", ")}</bdi> <small class="quiet">{t("share.until", { day: day(one.expires_at) })}</small>
            </span>
            <span class="button-row">
              <button type="button" class="button" onClick={() => void copy(one)}>
                {t("share.copy")}
              </button>
              <button type="button" class="button" onClick={() => onRevoke(one)}>
                {t("share.revoke")}
              </button>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
