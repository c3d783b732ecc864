// The empty thread: example questions, the number of documents, and a button to add some.
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "../../parts/icons";
import { go } from "../../routes";
import { ask, write } from "../../stores/chat";
import { attempt } from "../../stores/notices";
import { me, site } from "../../stores/session";
import { documentCount, loadSuggestions, suggestions } from "../../stores/suggestions";
import { addFiles } from "../../stores/uploads";
import { t } from "../../words/words";

export function Welcome({ onSend }: { onSend(): void }) {
  const name = me.value?.name?.split(" ")[0];
  const chooser = useRef<HTMLInputElement>(null);
  useEffect(() => void attempt(loadSuggestions), []);
  const begin = (question: string) => {
    write(question);
    void ask();
    requestAnimationFrame(onSend);
  };
  const add = (files: FileList | null) => {
    go({ view: "documents" });
    addFiles([...(files ?? [])].map((file) => ({ file, folder: "" })));
  };
  return (
    <div class="welcome">
      <h2>{name ? t("welcome.name", { name }) : t("welcome")}</h2>
      <p>{t("welcome.text")}</p>
      {suggestions.value.length > 0 && (
        <ul class="suggestions" aria-label={t("suggest")}>
          {suggestions.value.map((question) => (
            <li key={question}>
              <button type="button" class="option" onClick={() => begin(question)}>
                {question}
              </button>
            </li>
          ))}
        </ul>
      )}
      <div class="button-row">
        <button type="button" class="button" onClick={() => chooser.current!.click()}>
          <Icon name="upload" /> {t("upload.files")}
        </button>
        <input ref={chooser} hidden type="file" multiple onChange={(event) => add(event.currentTarget.files)} />
        {documentCount.value !== null && (
          <a href="?view=documents" class="small" onClick={(event) => (event.preventDefault(), go({ view: "documents" }))}>
            {documentCount.value ? t("documentCount", { count: documentCount.value }) : t("documentCount.none")}
          </a>
        )}
      </div>
      {site.value.stand_in && <p class="small">{t("standIn.how")}</p>}
    </div>
  );
}
