// The quoted words. Table rows arrive as Markdown and are rendered as rows.
import { cellText, rowsOf } from "../../text/tables";

export function Quote({ text }: { text: string }) {
  if (!text.split("\n").every((line) => line.startsWith("|"))) return <>{text}</>;
  return (
    <table>
      <tbody>
        {rowsOf(text).map((row, index) => (
          <tr key={index}>
            {row.map(([start, end]) => (
              <td key={start}>{cellText(text.slice(start, end))}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
