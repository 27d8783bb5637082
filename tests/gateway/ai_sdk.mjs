// One request of the `ai` package, told as one JSON document: node ai_sdk.mjs KIND WAY URL TOKEN MODEL MESSAGES
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";

const [kind, way, url, apiKey, name, messages] = process.argv.slice(2);
const model =
  kind === "chat"
    ? createOpenAICompatible({ name: "navigator", baseURL: `${url}/v1`, apiKey, includeUsage: true })(name)
    : createOpenAI({ baseURL: `${url}/v1`, apiKey }).responses(name);
const asked = { model, messages: JSON.parse(messages) };
const told = { text: "", reasoning: "", parts: [], error: null };

async function streamed() {
  const leaving = new AbortController();
  const result = streamText({ ...asked, abortSignal: leaving.signal, onError: () => {} });
  for await (const part of result.stream) {
    told.parts.push(part.type);
    if (part.type === "text-delta") {
      told.text += part.text;
      if (way === "abort") leaving.abort();
    }
    if (part.type === "reasoning-delta") told.reasoning += part.text;
    if (part.type === "error") told.error = String(part.error?.message ?? part.error?.error?.message ?? JSON.stringify(part.error));
    if (part.type === "finish") Object.assign(told, { usage: part.totalUsage, finish: part.finishReason });
  }
}

async function whole() {
  const { text, reasoningText, finishReason, usage, toolCalls, response } = await generateText(asked);
  Object.assign(told, { text, reasoning: reasoningText, finish: finishReason, usage, calls: toolCalls.length });
  told.messages = [...asked.messages, ...response.messages];
}

try {
  await (way === "whole" ? whole() : streamed());
} catch (error) {
  told.error = error.message;
  told.status = error.statusCode;
}
console.log(JSON.stringify(told));
