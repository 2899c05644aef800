// "Copy as ...", and the link to the page as it is.

import { announce, byId, make } from "./dom.js";
import { fragmentOf } from "./share.js";
import { asCommand, asCurl, asPython } from "./snippets.js";
import { LETTERS } from "./state.js";
import { apiKey } from "./stream.js";

const FORMS = { python: asPython, curl: asCurl, command: asCommand };

/** Wires the dialog "Copy as" and the button "Link". */
export function copying(page) {
  const dialog = byId("copy-dialog");
  const shown = byId("snippet");
  const column = byId("copy-column");

  function show() {
    const form = dialog.querySelector("[name=form]:checked").value;
    const chosen = page.state().columns.find(({ key }) => String(key) === column.value);
    const server = { name: page.server.name, origin: location.origin, locked: apiKey() !== "" };
    shown.textContent = FORMS[form](page.state(), chosen, server);
  }

  byId("copy-as").addEventListener("click", () => {
    const options = page
      .state()
      .columns.map(({ key, steering }) =>
        make("option", { value: String(key) }, `${LETTERS[key]}: ${steering}`),
      );
    column.replaceChildren(...options);
    show();
    dialog.showModal();
  });
  dialog.addEventListener("change", show);
  byId("copy-close").addEventListener("click", () => dialog.close());
  byId("copy-snippet").addEventListener("click", async () => {
    byId("copied").textContent = (await copy(shown.textContent))
      ? "Copied."
      : "Selected; copy it with Ctrl C.";
    if (byId("copied").textContent !== "Copied.") getSelection().selectAllChildren(shown);
  });

  byId("link").addEventListener("click", async () => {
    try {
      const { fragment, short } = await fragmentOf(page.state());
      history.replaceState(null, "", fragment);
      const where = (await copy(location.href)) ? "copied" : "in the address bar";
      const rest = short ? ", but for the mass of each token, which made it too long" : "";
      page.notice(
        `The link is ${where}: it holds the whole page${rest}. The server saw none of it.`,
      );
    } catch (error) {
      page.notice(error.message);
    }
  });
}

/** Whether the clipboard took a text; it does so on loopback and over https alone. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied.");
    return true;
  } catch {
    return false;
  }
}
