// What @ag-ui/client makes of the server. argv: a scenario; stdin: {url, token, …}; stdout: JSON.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(`${process.cwd()}/`);
const { HttpAgent, buildResumeArray, enforceEvents, verifyEvents } = require("@ag-ui/client");
const { defaultIfEmpty, from, lastValueFrom } = require("rxjs");

const given = JSON.parse(readFileSync(0, "utf8"));
const headers = { Authorization: `Bearer ${given.token}` };
const warnings = [];
console.warn = console.error = (...words) => warnings.push(words.map(String).join(" "));

class Thread extends HttpAgent {
  connect(input) {
    return new HttpAgent({ url: `${this.url}/connect`, headers }).run(input);
  }
}

const agent = new Thread({ url: `${given.url}/ag-ui`, headers });
const runs = [];

// One run; `on` is called with every event
async function run(start, on = () => {}) {
  const seen = { events: [], error: "" };
  runs.push(seen);
  const subscriber = {
    onEvent: ({ event }) => {
      seen.events.push(event);
      return on(event);
    },
  };
  try {
    await start(subscriber);
  } catch (error) {
    seen.error = String(error);
  }
  return seen;
}

const say = (content, on) => {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  return run((subscriber) => agent.runAgent({}, subscriber), on);
};

const answer = (response) => {
  const responses = Object.fromEntries(agent.pendingInterrupts.map((one) => [one.id, response]));
  const resume = buildResumeArray(agent.pendingInterrupts, responses);
  return run((subscriber) => agent.runAgent({ resume }, subscriber));
};

const stop = (event) => fetch(`${given.url}/api/runs/${runOf(event)}`, { method: "DELETE", headers });
const runOf = (event) => event.metadata.navigator.run;

const scenarios = {
  async verify() {
    for (const [name, events] of Object.entries(given.streams)) {
      const seen = { name, events: [], error: "" };
      runs.push(seen);
      try {
        const checked = from(events).pipe(enforceEvents(), verifyEvents(), defaultIfEmpty(null));
        seen.events.push(await lastValueFrom(checked));
      } catch (error) {
        seen.error = String(error);
      }
    }
  },
  async say() {
    for (const text of given.messages) await say(text);
  },
  async approve() {
    await say(given.message);
    await answer(given.response);
    await say(given.then);
  },
  async abort() {
    await say(given.message, (event) => event.type === "STEP_STARTED" && agent.abortRun());
  },
  async cancel() {
    let started;
    await say(given.message, async (event) => {
      started = event.type === "RUN_STARTED" ? event : started;
      if (event.type === "STEP_STARTED") await stop(started);
    });
  },
  async reconnect() {
    await say(given.first);
    await say(given.message, (event) => event.type === "STEP_STARTED" && agent.abortRun());
    await run((subscriber) => agent.connectAgent({}, subscriber));
  },
};

await scenarios[process.argv[2]]();
const { messages, pendingInterrupts, threadId } = agent;
process.stdout.write(JSON.stringify({ runs, messages, pendingInterrupts, threadId, warnings }));
process.exit(0);
