// Short messages, and the page's only live region: screen readers would read growing text in fragments.
import { announcement, dismiss, notices } from "../stores/notices";
import { t } from "../words/words";
import { IconButton } from "./button";

export function Notices() {
  return (
    <>
      <div class="unseen" role="status" aria-live="polite" aria-atomic="true">
        {announcement.value}
      </div>
      <div class="notices" role="region" aria-label={t("messages")}>
        {notices.value.map((notice) => (
          <div key={notice.id} class={notice.isError ? "notice error" : "notice"}>
            <span>{notice.text}</span>
            <IconButton icon="close" name={t("close")} onClick={() => dismiss(notice.id)} />
          </div>
        ))}
      </div>
    </>
  );
}
