// Accepts files dropped anywhere on the page: for the conversation in the chat, elsewhere as documents.
import { useLayoutEffect, useState } from "preact/hooks";
import { go, route } from "../routes";
import { attempt } from "../stores/notices";
import { attachFiles } from "../stores/thread_files";
import { addFiles, filesOfDrop } from "../stores/uploads";
import { t } from "../words/words";

const IDLE_MS = 150; // browsers repeat dragover events while a drag is over the page

export function DropTarget() {
  const [isOver, setOver] = useState(false);
  // Before the first paint: a browser opens a file that is dropped on a page without a listener.
  useLayoutEffect(() => {
    let timer = 0;
    const over = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(true);
      clearTimeout(timer);
      timer = window.setTimeout(() => setOver(false), IDLE_MS);
    };
    const drop = (event: DragEvent) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      setOver(false);
      const items = event.dataTransfer.items;
      void attempt(async () => {
        const files = await filesOfDrop(items);
        if (route.value.view === "chat") return attachFiles(files.map(({ file }) => file));
        if (route.value.view !== "documents") go({ view: "documents" });
        addFiles(files);
      });
    };
    window.addEventListener("dragover", over);
    window.addEventListener("drop", drop);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("drop", drop);
    };
  }, []);
  return isOver ? <div class="drop-target">{t(route.value.view === "chat" ? "files.dropHere" : "upload.dropHere")}</div> : null;
}
