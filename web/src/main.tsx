// Begins: language, who is signed in, then the page.
import { render } from "preact";
import { signInAddress } from "./api/request";
import { begin, rememberedLanguage } from "./stores/session";
import { wordsOf } from "./stores/notices";
import { CallError } from "./api/request";
import { App } from "./views/app";
import { StartFailed } from "./views/start_failed";

rememberedLanguage();
const root = document.body;
root.replaceChildren();
try {
  await begin();
  render(<App />, root);
} catch (error) {
  if (error instanceof CallError && error.status === 401) location.replace(signInAddress());
  else render(<StartFailed reason={wordsOf(error)} />, root);
}
