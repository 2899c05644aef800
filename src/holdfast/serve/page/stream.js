// What the page asks of the server: JSON, and streams of server-sent events.

const KEY = "holdfast-key";

export const apiKey = () => sessionStorage.getItem(KEY) ?? "";
export const keepApiKey = (key) => sessionStorage.setItem(KEY, key);

/** A refusal, in the server's own sentence. */
class ServerError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

export async function getJson(path) {
  return (await ask(path, { headers: headers() })).json();
}

/** The events of an answer, each parsed, up to `[DONE]`. */
export async function* events(path, body, signal) {
  const response = await ask(path, {
    method: "POST",
    headers: { ...headers(), "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  for await (const data of dataOf(response.body)) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data);
    if (event.error) throw new ServerError(event.error.message, event.error.code);
    yield event;
  }
  throw new ServerError("The server broke off before the end; send it again.");
}

/** The data of each event; one event's lines are joined. */
async function* dataOf(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r\n|\n/);
      rest = lines.pop();
      for (const line of lines) {
        if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
        if (line === "" && data.length) {
          yield data.join("\n");
          data = [];
        }
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // left early: the server is to stop
  }
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(`${location.host} does not answer; is the server running?`);
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  const why = answer.error?.message ?? `${path} answered ${response.status}.`;
  throw new ServerError(why, response.status);
}

const headers = () => (apiKey() ? { Authorization: `Bearer ${apiKey()}` } : {});
