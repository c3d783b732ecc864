// Entry point: loads the language and the session, then renders the page.
import "./shared";
import { render } from "preact";
import { signInAddress } from "./api/request";
import { begin, loadLanguage } from "./stores/session";
import { wordsOf } from "./stores/notices";
import { CallError } from "./api/request";
import { App } from "./views/app";
import { StartFailed } from "./views/start_failed";

const words = loadLanguage();
const root = document.body;
root.replaceChildren();
try {
  await Promise.all([words, begin()]);
  render(<App />, root);
} catch (error) {
  if (error instanceof CallError && error.status === 401) location.replace(signInAddress());
  else {
    await words.catch(() => {});
    render(<StartFailed reason={wordsOf(error)} />, root);
  }
}
