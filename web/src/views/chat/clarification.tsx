// A clarifying question with numbered options. The composer also accepts a number or free text.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Clarification as Ask, ClarificationOption as Option } from "../../api/types";
import { cancel, choose, draft } from "../../stores/chat";
import { useLabels } from "../../stores/namesakes";
import { attempt } from "../../stores/notices";
import { translationOf } from "../../words/server";
import { dateTime, day, t } from "../../words/words";

function detailsOf({ details = [], date }: Option): string[] {
  const shown = details.map((one) => (/^\d{4}-\d\d-\d\d$/.test(one) ? day(one) : translationOf("TYPES", one, one)));
  return date ? [...shown, `${t("added")}: ${day(date)}`] : shown;
}

const composer = () => document.getElementById("question");

export function Clarification({ runId, ask }: { runId: string; ask: Ask }) {
  const [isSent, setSent] = useState(false);
  const card = useRef<HTMLDivElement>(null);
  const labels = useLabels(ask.options);
  const answer = async (number: number) => {
    setSent(true);
    if (!(await attempt(() => choose(runId, { choice: number })))) setSent(false);
  };
  useLayoutEffect(() => {
    // Take the focus from an empty composer only, never from another element.
    const active = document.activeElement;
    const isFree = active === document.body || (active === composer() && !draft.value);
    if (isFree) card.current!.focus({ preventScroll: true });
    return () => {
      const now = document.activeElement;
      if (now === document.body || card.current?.contains(now)) composer()?.focus({ preventScroll: true });
    };
  }, []);
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as Element;
      if (target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
      const option = ask.options.find((one) => String(one.number) === event.key);
      if (option && !isSent) {
        event.preventDefault();
        void answer(option.number);
      } else if (target === card.current && event.key.length === 1 && /[\p{L}\p{N}]/u.test(event.key)) composer()?.focus(); // receives the letter
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [ask, isSent]);
  return (
    <div class="clarification" role="group" aria-label={t("clarification")} tabIndex={-1} ref={card}>
      <p>{ask.question}</p>
      <ol>
        {ask.options.map((option) => (
          <li key={option.number}>
            <button type="button" class="option" disabled={isSent} onClick={() => answer(option.number)}>
              <kbd>{option.number}</kbd>
              <span>
                <strong>{option.title || option.filename}</strong>
                {option.filename && (
                  <small>
                    <bdi>{option.filename}</bdi> · {[labels.get(option.doc_id), ...detailsOf(option)].filter(Boolean).join(" · ")}
                  </small>
                )}
              </span>
            </button>
          </li>
        ))}
      </ol>
      <p class="quiet small">
        {t("waitsUntil", { time: dateTime(ask.expires_at) })}{" "}
        <button type="button" class="link-button" disabled={isSent} onClick={() => attempt(() => cancel(runId))}>
          {t("askOther")}
        </button>
      </p>
    </div>
  );
}

/** A clarifying question and its reply. */
export function Clarified({ question, answer }: { question: string; answer: string }) {
  return (
    <div class="clarified" role="group" aria-label={t("clarification")}>
      <p class="quiet">{question}</p>
      <p>{answer ? t("youChose", { answer }) : t("nothingChosen")}</p>
    </div>
  );
}
