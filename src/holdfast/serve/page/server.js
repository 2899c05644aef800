// Requests to the server: JSON, and streams of server-sent events.

const KEY = "holdfast-key";
const LOST = "The connection was lost; is the server still running?";

export const apiKey = () => sessionStorage.getItem(KEY) ?? "";
export const keepApiKey = (key) => sessionStorage.setItem(KEY, key);

/** An error with the server's own sentence, or a sentence about the connection. */
class ServerError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

export const getJson = async (path) => (await request(path, {})).json();

/** Yields the parsed events of an answer, up to `[DONE]`. */
export async function* events(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify(body), signal };
  const response = await request(path, options);
  for await (const data of dataOf(response.body)) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data);
    if (event.error) throw new ServerError(event.error.message, event.error.code);
    yield event;
  }
  throw new ServerError(LOST);
}

/** Yields the data of each event; an event of this server has one line of data. */
async function* dataOf(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split(/\r?\n/);
      rest = lines.pop();
      for (const line of lines) if (line.startsWith("data: ")) yield line.slice(6);
    }
  } catch (error) {
    throw error.name === "AbortError" ? error : new ServerError(LOST);
  } finally {
    reader.cancel().catch(() => {}); // tells the server to stop if the events are left early
  }
}

async function request(path, { headers, ...options }) {
  const key = apiKey() ? { Authorization: `Bearer ${apiKey()}` } : {};
  let response;
  try {
    const sent = { cache: "no-store", headers: { ...key, ...headers }, ...options };
    response = await fetch(path, sent);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(`${location.host} does not answer; is the server running?`);
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  const why = answer.error?.message ?? `${path} answered ${response.status}.`;
  throw new ServerError(why, response.status);
}
