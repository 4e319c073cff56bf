// Calls an agent through the official JavaScript client, as `python_clients.py` does.
import { createInterface } from "node:readline";
import OpenAI from "openai";

const connect = (call) =>
  new OpenAI({ baseURL: `${call.url}/v1`, apiKey: call.token, maxRetries: 0 });

const parameters = (call) => ({
  model: call.model,
  messages: call.messages ?? [{ role: "user", content: call.text }],
});

async function answerApproval(call, url) {
  const pk = url.match(/approvals\/(\d+)\//)[1];
  await fetch(`${call.url}/api/v1/approvals/${pk}/${call.answer}`, {
    method: "POST",
    body: "{}",
    headers: { Authorization: `Bearer ${call.token}` },
  });
}

const functions = {
  async chat(call) {
    const done = await connect(call).chat.completions.create(parameters(call));
    return done.choices[0].message.content;
  },

  async chat_stream(call) {
    const stream = await connect(call).chat.completions.create({
      ...parameters(call),
      stream: true,
    });
    let text = "";
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta?.content ?? "";
      if (chunk.approval) await answerApproval(call, chunk.approval.url);
      if (call.leaves && text) stream.controller.abort();
    }
    return text;
  },

  async response_stream(call) {
    const client = connect(call);
    const stream = client.responses.stream({ model: call.model, input: call.text });
    const types = new Set();
    for await (const event of stream) types.add(event.type);
    return [(await stream.finalResponse()).output_text, [...types].sort()];
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const call = JSON.parse(line);
  let done;
  try {
    done = { result: await functions[call.do](call) };
  } catch (error) {
    const { status, code, param, message } = error;
    done = { error: { name: error.constructor.name, status, code, param, message } };
  }
  console.log(JSON.stringify(done));
}
