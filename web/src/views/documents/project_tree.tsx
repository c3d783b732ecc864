// Projects as a tree. Choosing a project includes its children.
import { treeOf, type Branch } from "../../model/project_tree";
import { route } from "../../routes";
import { filters, projects, showProjects } from "../../stores/documents";
import { t } from "../../words/words";

/** Whether the tree fits next to the list with all of its columns (page.css). */
const isWide = () => matchMedia("(min-width: 88rem)").matches;

export function ProjectTree() {
  if (!projects.value.length) return null;
  const chosen = filters.value.project_id ?? [];
  return (
    <details class="projects" open={!route.value.doc && (isWide() || chosen.length > 0)}>
      <summary>{t("projects")}</summary>
      <ul>
        <li>
          <button type="button" class="project" aria-pressed={!chosen.length} onClick={() => showProjects([])}>
            {t("allProjects")}
          </button>
        </li>
        <Branches branches={treeOf(projects.value)} chosen={chosen.join("\n")} />
      </ul>
    </details>
  );
}

function Branches({ branches, chosen }: { branches: readonly Branch[]; chosen: string }) {
  return (
    <>
      {branches.map(({ name, ids, count, below }) => (
        <li key={name}>
          <button type="button" class="project" aria-pressed={ids.join("\n") === chosen} onClick={() => showProjects(ids)}>
            <bdi>{name}</bdi> <span class="quiet">{count}</span>
          </button>
          {below.length > 0 && (
            <ul>
              <Branches branches={below} chosen={chosen} />
            </ul>
          )}
        </li>
      ))}
    </>
  );
}
