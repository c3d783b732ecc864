// The quoted words. Table rows arrive as Markdown and are rendered as rows.
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
