// The conversation: turns from the oldest loaded one to the newest, and the composer below.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { route } from "../../routes";
import { hasOlder, isLoading, loadError, loadOlder, showThread, shown, turns } from "../../stores/chat";
import { isConnected } from "../../stores/following";
import { attempt } from "../../stores/notices";
import { showFiles } from "../../stores/thread_files";
import { threads } from "../../stores/threads";
import { t } from "../../words/words";
import { IconButton } from "../../parts/button";
import { Composer } from "./composer";
import { TurnView } from "./turn";
import { Welcome } from "./welcome";

const NEAR_END_PX = 60;
const ABOVE_QUESTION_PX = 16;

const isNearEnd = (element: Element) => element.scrollHeight - element.clientHeight - element.scrollTop < NEAR_END_PX;

export function ChatView() {
  const thread = route.value.thread;
  const scroller = useRef<HTMLDivElement>(null);
  const { isAtEnd, follow, toEnd, onScroll } = useFollowing(scroller, thread);
  // Runs before the user can type: opening a thread resets the turns of the previous one.
  useLayoutEffect(() => {
    void showThread(thread);
    void attempt(() => showFiles(thread));
    // Only with a likely hardware keyboard; on phones the on-screen keyboard would cover the page.
    if (!thread && matchMedia("(pointer: fine)").matches) document.getElementById("question")?.focus();
  }, [thread]);
  const title = threads.value.find((one) => one.thread_id === thread)?.title ?? "";
  useEffect(() => {
    document.title = title ? `${title} – Groundwork` : "Groundwork";
  }, [title]);
  const isEmpty = !turns.value.length && !isLoading.value && !loadError.value;
  return (
    <div class="chat">
      <h1 class="unseen">{title || t("newThread")}</h1>
      <div class="scroller" ref={scroller} onScroll={onScroll} tabIndex={0} role="region" aria-label={t("conversation")}>
        <div class="turns">
          {hasOlder.value && <Older scroller={scroller} />}
          {isLoading.value && <p class="quiet">{t("loading")}</p>}
          {loadError.value && <p role="alert">{loadError.value}</p>}
          {isEmpty && <Welcome onSend={follow} />}
          {shown.value.map((one) => (
            <TurnView key={one.turn.key} turn={one.turn} at={one.at} count={one.versions.length} />
          ))}
        </div>
      </div>
      {!isAtEnd && (
        <div class="to-end">
          <IconButton icon="back" name={t("toEnd")} onClick={toEnd} />
        </div>
      )}
      {!isConnected.value && <p class="connection">{t("reconnecting")}</p>}
      <Composer onSend={follow} />
    </div>
  );
}

/** Keeps the growing newest turn in view until the user scrolls up. Its question stays visible at the top,
 *  so that a long answer is read from its beginning. */
function useFollowing(scroller: { current: HTMLDivElement | null }, thread: string) {
  const [isAtEnd, setAtEnd] = useState(true);
  const following = useRef(true);
  const last = useRef(0);
  const scrollTo = (top: number) => {
    const element = scroller.current!;
    element.scrollTop = top;
    last.current = element.scrollTop;
    setAtEnd(isNearEnd(element));
  };
  const toNewest = () => {
    const element = scroller.current!;
    const newest = element.querySelector(".turn:last-of-type");
    const top = newest ? newest.getBoundingClientRect().top - element.getBoundingClientRect().top - ABOVE_QUESTION_PX : 0;
    scrollTo(Math.min(element.scrollHeight - element.clientHeight, element.scrollTop + top));
  };
  useLayoutEffect(() => {
    following.current = true;
    const observer = new ResizeObserver(() => (following.current && turns.value.length ? toNewest() : setAtEnd(isNearEnd(scroller.current!))));
    observer.observe(scroller.current!.firstElementChild!);
    observer.observe(scroller.current!);
    return () => observer.disconnect();
  }, [thread]);
  const onScroll = () => {
    const element = scroller.current;
    if (!element) return; // the last event of a view that has just been left
    const isUp = element.scrollTop < last.current - 1;
    last.current = element.scrollTop;
    const isEnd = isNearEnd(element);
    setAtEnd(isEnd);
    if (isUp) following.current = isEnd;
    else if (isEnd) following.current = true;
  };
  const follow = () => {
    following.current = true;
    toNewest();
  };
  const toEnd = () => scrollTo(scroller.current!.scrollHeight);
  return { isAtEnd, follow, toEnd, onScroll };
}

function Older({ scroller }: { scroller: { current: HTMLDivElement | null } }) {
  const onClick = () =>
    attempt(async () => {
      const element = scroller.current!;
      const fromEnd = element.scrollHeight - element.scrollTop;
      await loadOlder();
      requestAnimationFrame(() => (element.scrollTop = element.scrollHeight - fromEnd));
    });
  return (
    <button type="button" class="button quiet-button" onClick={onClick}>
      {t("older")}
    </button>
  );
}
