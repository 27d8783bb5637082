// Lets node in the box speak to the box's one server, whatever scheme and port it was given.
const http = require("http");
const https = require("https");
const real = http.request;

function plain(first, second, third) {
  const given = typeof first === "string" || first instanceof URL;
  const url = given ? new URL(first) : null;
  const options = given ? (typeof second === "object" ? second : {}) : first;
  const done = given ? (typeof second === "function" ? second : third) : second;
  const name = url ? url.hostname : options.hostname || options.host || "localhost";
  return real(
    {
      method: options.method || "GET",
      host: "127.0.0.1",
      port: 80,
      path: url ? url.pathname + url.search : options.path || "/",
      headers: { ...(options.headers || {}), Host: name },
    },
    done,
  );
}

function get(...given) {
  const asked = plain(...given);
  asked.end();
  return asked;
}

http.request = https.request = plain;
http.get = https.get = get;
globalThis.fetch = (url, options = {}) =>
  new Promise((resolve, reject) => {
    const asked = plain(String(url), { method: options.method, headers: options.headers }, (answer) => {
      const held = [];
      answer.on("data", (part) => held.push(part));
      answer.on("end", () => {
        const data = Buffer.concat(held);
        const text = async () => data.toString();
        resolve({ ok: true, status: 200, text, json: async () => JSON.parse(data), arrayBuffer: async () => data });
      });
    });
    asked.on("error", reject);
    if (options.body) asked.write(String(options.body));
    asked.end();
  });
