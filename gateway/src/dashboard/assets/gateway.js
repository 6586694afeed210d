// Calls of the gateway that serves this page.

/** Address of the gateway, also behind a proxy that adds a prefix. */
const root = location.pathname.replace(/\/dashboard\/[^/]*$/, "");

const TOKEN = "token";

/** Refusal by the gateway, with its words. */
export class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** Fetches a path; asks for a token where the gateway wants one. */
export async function ask(path, { headers = {}, ...options } = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const known = token ? { authorization: `Bearer ${token}` } : {};
    const answer = await fetch(root + path, { ...options, headers: { ...headers, ...known }, cache: "no-store" });
    if (answer.status !== 401) return answer;
    await login(token);
  }
}

/** Returns the JSON of an answer, or throws the refusal. */
export async function call(path, options) {
  const answer = await ask(path, options);
  if (answer.ok) return answer.json();
  throw await refusal(answer);
}

/** Returns the refusal that an answer is. */
export async function refusal(answer) {
  return new Refusal(answer.status, await words(answer));
}

async function words(answer) {
  const text = await answer.text();
  try {
    const told = JSON.parse(text);
    return told.detail || told.message || told.title || text;
  } catch {
    return text || answer.statusText;
  }
}

let asked = null;

/** Asks for a token, once for all calls that wait for one. A token that was refused is forgotten. */
function login(refused) {
  if (sessionStorage.getItem(TOKEN) !== refused) return Promise.resolve();
  sessionStorage.removeItem(TOKEN);
  asked ??= new Promise(resolve => {
    const dialog = document.getElementById("login");
    dialog.addEventListener("close", () => {
      const field = dialog.querySelector("input");
      if (field.value) sessionStorage.setItem(TOKEN, field.value.trim());
      field.value = "";
      asked = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asked;
}
