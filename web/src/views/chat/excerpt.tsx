// The beginning of a passage, with tables as tables.
import { excerptOf } from "../../text/excerpt";

export function Excerpt({ passage }: { passage: string }) {
  return (
    <div class="excerpt">
      {excerptOf(passage).map((part, index) =>
        "text" in part ? (
          <p key={index}>{part.text}</p>
        ) : (
          <table key={index}>
            <tbody>
              {part.rows.map((row, at) => (
                <tr key={at}>
                  {row.map((cell, column) => (
                    <td key={column}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        ),
      )}
    </div>
  );
}
