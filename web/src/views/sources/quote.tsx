// The quoted words. Rows of a table come as Markdown, and are shown as rows.
import { rowsOf } from "./elements";

export function Quote({ text }: { text: string }) {
  if (!text.split("\n").every((line) => line.startsWith("|"))) return <>{text}</>;
  return (
    <table>
      <tbody>
        {rowsOf(text).map((row, index) => (
          <tr key={index}>
            {row.map(([start, end]) => (
              <td key={start}>{text.slice(start, end).trim().replaceAll("\\|", "|")}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
