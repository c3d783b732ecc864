// Questions to ask next, as the model suggests them. A document may have planted one, so a click only puts its plain
// text into the composer.
import { draft, write } from "../../stores/chat";
import { t } from "../../words/words";

export function NextQuestions({ questions }: { questions: readonly string[] }) {
  const choose = (question: string) => {
    const text = draft.value.trim();
    write(text && !questions.includes(text) ? `${text}\n${question}` : question);
    document.getElementById("question")?.focus();
  };
  return (
    <ul class="next-questions" aria-label={t("nextQuestions")}>
      {questions.map((question) => (
        <li key={question}>
          <button type="button" class="option" onClick={() => choose(question)}>
            {question}
          </button>
        </li>
      ))}
    </ul>
  );
}
