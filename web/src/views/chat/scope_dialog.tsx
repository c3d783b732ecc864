// Chooses the project and the documents that questions are limited to.
import { useEffect, useState } from "preact/hooks";
import { read } from "../../api/request";
import type { DocumentFacets, DocumentList } from "../../api/types";
import { Dialog } from "../../parts/dialog";
import { NO_SCOPE, scope } from "../../stores/chat";
import { labelsOfListed } from "../../stores/namesakes";
import { wordsOf } from "../../stores/notices";
import { t } from "../../words/words";

const SEARCH_DELAY_MS = 200;
const MOST = 100; // limit of the API

export function ScopeDialog({ onClose }: { onClose(): void }) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState<DocumentList["documents"]>([]);
  const [projects, setProjects] = useState<readonly string[]>([]);
  const [error, setError] = useState("");
  const failed = (error: unknown) => setError(wordsOf(error));
  useEffect(() => {
    read<DocumentFacets>("/api/documents/facets").then((facets) => setProjects(facets.project_id.map((value) => value.value)), failed);
  }, []);
  useEffect(() => {
    let isWanted = true; // reset when the search text changes
    const look = () =>
      read<DocumentList>(`/api/documents?limit=50${words ? `&q=${encodeURIComponent(words)}` : ""}`).then(
        (list) => isWanted && setFound(list.documents.filter((document) => document.status === "ready")),
        (error) => isWanted && failed(error),
      );
    const timer = setTimeout(look, words ? SEARCH_DELAY_MS : 0);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [words]);
  const chosen = scope.value.documents;
  const labels = labelsOfListed(found);
  const toggle = (id: string, name: string) => {
    const documents = chosen.some((one) => one.id === id) ? chosen.filter((one) => one.id !== id) : [...chosen, { id, name }];
    scope.value = { ...scope.value, documents: documents.slice(0, MOST) };
  };
  return (
    <Dialog title={t("scope")} onClose={onClose}>
      <p class="quiet">{t("scopeText")}</p>
      {error && <p role="alert">{error}</p>}
      <Projects projects={projects} />
      <label class="field">
        {t("documents")}
        <input type="search" placeholder={t("searchDocuments")} value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      </label>
      <fieldset class="checks tall">
        <legend class="unseen">{t("documents")}</legend>
        {found.map((document) => (
          <label key={document.doc_id}>
            <input
              type="checkbox"
              checked={chosen.some((one) => one.id === document.doc_id)}
              onChange={() => toggle(document.doc_id, document.filename)}
            />{" "}
            <span>
              {document.title || document.filename}
              <small>
                <bdi>{document.filename}</bdi>
                {labels.has(document.doc_id) && ` · ${labels.get(document.doc_id)}`}
              </small>
            </span>
          </label>
        ))}
      </fieldset>
      <footer class="dialog-foot">
        <button type="button" class="button" onClick={() => (scope.value = { ...NO_SCOPE, agent: scope.value.agent })}>
          {t("clearScope")}
        </button>
        <button type="button" class="button primary" onClick={onClose}>
          {t("done")}
        </button>
      </footer>
    </Dialog>
  );
}

function Projects({ projects }: { projects: readonly string[] }) {
  if (!projects.length) return null;
  return (
    <label class="field">
      {t("project")}
      <select value={scope.value.project} onChange={(event) => (scope.value = { ...scope.value, project: event.currentTarget.value })}>
        <option value="">{t("allProjects")}</option>
        {projects.map((project) => (
          <option key={project} value={project}>
            {project}
          </option>
        ))}
      </select>
    </label>
  );
}
