// What an empty thread shows.
import { me } from "../../stores/session";
import { t } from "../../words/words";

export function Welcome() {
  const name = me.value?.name?.split(" ")[0];
  return (
    <div class="welcome">
      <h2>{name ? t("welcome.name", { name }) : t("welcome")}</h2>
      <p>{t("welcome.text")}</p>
    </div>
  );
}
