// What a run asks back: numbered documents to choose from, or an answer in one's own words.
import { useLayoutEffect, useState } from "preact/hooks";
import type { Clarification as Ask, ClarificationOption as Option } from "../../api/types";
import { choose } from "../../stores/chat";
import { attempt } from "../../stores/notices";
import { dateTime, day, t } from "../../words/words";

function detailsOf({ details = [], date }: Option): string[] {
  const told = details.map((one) => (/^\d{4}-\d\d-\d\d$/.test(one) ? day(one) : one));
  return date ? [...told, `${t("added")}: ${day(date)}`] : told;
}

export function Clarification({ runId, ask }: { runId: string; ask: Ask }) {
  const [text, setText] = useState("");
  const [isSent, setSent] = useState(false);
  const answer = async (choice: { choice: number } | { text: string }) => {
    setSent(true);
    if (!(await attempt(() => choose(runId, choice)))) setSent(false);
  };
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isWriting = (event.target as Element).closest("input, textarea, select, dialog") !== null;
      const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
      const option = ask.options.find((one) => String(one.number) === event.key);
      if (option && isPlain && !isWriting && !isSent) void answer({ choice: option.number });
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [ask, isSent]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (text.trim()) void answer({ text: text.trim() });
  };
  return (
    <div class="clarification" role="group" aria-label={t("clarification")}>
      <p>{ask.question}</p>
      <ol>
        {ask.options.map((option) => (
          <li key={option.number}>
            <button type="button" class="option" disabled={isSent} onClick={() => answer({ choice: option.number })}>
              <kbd>{option.number}</kbd>
              <span>
                <strong>{option.title || option.filename}</strong>
                {option.filename && (
                  <small>
                    <bdi>{option.filename}</bdi> · {detailsOf(option).join(" · ")}
                  </small>
                )}
              </span>
            </button>
          </li>
        ))}
      </ol>
      <form class="row" onSubmit={submit}>
        <input
          aria-label={t("ownWords")}
          placeholder={t("ownWords")}
          value={text}
          maxLength={500}
          disabled={isSent}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit" class="button" disabled={isSent || !text.trim()}>
          {t("answer")}
        </button>
      </form>
      <p class="quiet small">{t("waitsUntil", { time: dateTime(ask.expires_at) })}</p>
    </div>
  );
}
