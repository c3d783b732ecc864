// Table components for the administrators' reports.
import type { ComponentChildren } from "preact";
import { t } from "../../words/words";

interface Rows {
  name: string;
  head: readonly string[];
  rows: readonly (readonly ComponentChildren[])[];
}

export function Table({ name, head, rows }: Rows) {
  if (!rows.length) return <p class="quiet">{t("admin.nothing")}</p>;
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label={name}>
      <table>
        <thead>
          <tr>
            {head.map((one) => (
              <th key={one} scope="col">
                {one}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Returns an API code as English words. */
export const inWords = (code: string) => code.replaceAll("_", " ");
