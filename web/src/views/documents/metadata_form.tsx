// Shows and corrects metadata. If another user changed a field in the meantime, both values are shown.
import { useState } from "preact/hooks";
import type { DocumentDetail } from "../../api/types";
import { notify, wordsOf } from "../../stores/notices";
import { typeName } from "../../words/server";
import { languageName, t } from "../../words/words";
import { saveKnown, type Known } from "./document_panel";

const FIELDS = ["title", "document_type", "author", "department", "language", "tags"] as const;
type Field = (typeof FIELDS)[number];
type Values = Record<Field, string>;

function valuesOf(detail: DocumentDetail): Values {
  const text = (field: Field) => (field === "tags" ? detail.tags.join(", ") : (detail[field] ?? ""));
  return Object.fromEntries(FIELDS.map((field) => [field, text(field)])) as Values;
}

/** Returns a value of a document's metadata in the page's language. */
export function shownValue(field: string, value: string): string {
  if (!value) return "–";
  return field === "language" ? languageName(value) : field === "document_type" ? typeName(value) : value;
}

function sent(field: Field, value: string): unknown {
  if (field === "tags") return value.split(",").map((tag) => tag.trim()).filter(Boolean);
  return value.trim() || null;
}

export function MetadataForm({ known, canChange, onChange }: { known: Known; canChange: boolean; onChange(known: Known): void }) {
  const [values, setValues] = useState(valuesOf(known.detail));
  const [base, setBase] = useState(known);
  const [error, setError] = useState("");
  const [isEditing, setEditing] = useState(false);
  const kept = valuesOf(base.detail);
  const start = valuesOf(known.detail);
  const changed = FIELDS.filter((field) => values[field] !== kept[field]);
  const save = async (event: Event) => {
    event.preventDefault();
    const body = Object.fromEntries(changed.map((field) => [field, sent(field, values[field])]));
    try {
      // Other fields, e.g. the access list, may have changed since.
      const isSame = (now: DocumentDetail) => FIELDS.every((field) => valuesOf(now)[field] === kept[field]);
      const next = await saveKnown(base, { method: "PATCH", path: "", body, isSame, onConflict: setBase });
      setBase(next);
      setValues(valuesOf(next.detail));
      setError("");
      onChange(next);
      notify(t("saved"));
    } catch (failed) {
      setError(wordsOf(failed));
    }
  };
  return (
    <form class="metadata" onSubmit={save}>
      <h3>{t("metadata")}</h3>
      {FIELDS.map((field) => (
        <label key={field} class="field">
          <span>
            {t(field === "title" || field === "author" ? field : `facet.${field}`)}
            {base.detail.edited_fields.includes(field) && <span class="tag">{t("corrected")}</span>}
          </span>
          {isEditing ? (
            <input value={values[field]} onInput={(event) => setValues({ ...values, [field]: event.currentTarget.value })} />
          ) : (
            <bdi>{shownValue(field, values[field])}</bdi>
          )}
          {base !== known && kept[field] !== start[field] && kept[field] !== values[field] && (
            <small class="warning-text">{t("nowIs", { value: shownValue(field, kept[field]) })}</small>
          )}
        </label>
      ))}
      {error && <p role="alert">{error}</p>}
      {isEditing ? (
        <button type="submit" class="button primary" disabled={!changed.length}>
          {t("save")}
        </button>
      ) : (
        canChange && (
          <button type="button" class="button" onClick={() => setEditing(true)}>
            {t("edit")}
          </button>
        )
      )}
    </form>
  );
}
