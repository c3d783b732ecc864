// Rates an answer with a thumb and, if it is bad, a reason.
import { useState } from "preact/hooks";
import type { Feedback } from "../../api/types";
import { IconButton } from "../../parts/button";
import { Dialog } from "../../parts/dialog";
import { rate, type Turn } from "../../stores/chat";
import { attempt, notify } from "../../stores/notices";
import { t, type Key } from "../../words/words";

const REASONS = ["wrong", "incomplete", "wrong_source", "missing_figure", "outdated", "unclear", "too_slow"] as const;

export function Rating({ turn }: { turn: Turn }) {
  const [isAsking, setAsking] = useState(false);
  const thumb = turn.feedback.value?.thumb ?? null;
  const set = (body: Omit<Feedback, "given_at"> | null) => attempt(() => rate(turn, body));
  const up = () => set(thumb === "up" ? null : { rating: null, thumb: "up", reasons: [], comment: null });
  const down = () => (thumb === "down" ? set(null) : setAsking(true));
  return (
    <>
      <IconButton icon="up" name={t("good")} aria-pressed={thumb === "up"} onClick={up} />
      <IconButton icon="down" name={t("bad")} aria-pressed={thumb === "down"} onClick={down} />
      {isAsking && <Why onClose={() => setAsking(false)} onSend={set} />}
    </>
  );
}

function Why({ onClose, onSend }: { onClose(): void; onSend(body: Omit<Feedback, "given_at">): Promise<boolean> }) {
  const [reasons, setReasons] = useState<Feedback["reasons"]>([]);
  const [comment, setComment] = useState("");
  const toggle = (reason: Feedback["reasons"][number]) =>
    setReasons(reasons.includes(reason) ? reasons.filter((one) => one !== reason) : [...reasons, reason]);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!(await onSend({ rating: null, thumb: "down", reasons, comment: comment.trim() || null }))) return;
    notify(t("thanks"));
    onClose();
  };
  return (
    <Dialog title={t("why")} onClose={onClose}>
      <form onSubmit={submit}>
        <fieldset class="checks">
          <legend class="unseen">{t("why")}</legend>
          {REASONS.map((reason) => (
            <label key={reason}>
              <input type="checkbox" checked={reasons.includes(reason)} onChange={() => toggle(reason)} />{" "}
              {t(`reason.${reason}` as Key)}
            </label>
          ))}
        </fieldset>
        <label class="field">
          {t("comment")}
          <textarea rows={3} maxLength={2000} value={comment} onInput={(event) => setComment(event.currentTarget.value)} />
        </label>
        <footer class="dialog-foot">
          <button type="submit" class="button primary">
            {t("send")}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
