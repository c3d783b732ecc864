// Shown when the page cannot start: access was denied, or the server does not respond.
import { signOutAddress } from "../api/request";
import { t } from "../words/words";

export function StartFailed({ reason }: { reason: string }) {
  return (
    <main class="start-failed">
      <h1>Groundwork</h1>
      <p role="alert">{reason}</p>
      <p>
        <button type="button" class="button primary" onClick={() => location.reload()}>
          {t("tryAgain")}
        </button>{" "}
        <a class="button" href={signOutAddress()}>
          {t("signOut")}
        </a>
      </p>
    </main>
  );
}
