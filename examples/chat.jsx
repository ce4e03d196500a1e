// A chat with the agent "guide" (AI SDK): texts, tool calls, approvals, and answers that survive a reload and a lost connection.
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, getToolName, isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const api = "/ai-sdk/v1/guide/chat"; // your back end passes this on to Dragoman, and adds the API key
const id = (location.hash ||= crypto.randomUUID()).replace("#", "");

function Call({ part, decide }) {
  const { approval, errorText, input, output, state } = part;
  return (
    <div className="call">
      <code>{getToolName(part)} {JSON.stringify(input)}</code> {output ?? errorText ?? state}
      {state === "approval-requested" && (
        <>
          <button onClick={() => decide({ id: approval.id, approved: true })}>Approve</button>
          <button onClick={() => decide({ id: approval.id, approved: false })}>Deny</button>
        </>
      )}
    </div>
  );
}

function Chat({ before }) {
  const [text, setText] = useState("");
  const chat = useChat({
    id,
    messages: before,
    resume: true, // an answer that is not finished continues
    transport: new DefaultChatTransport({ api }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  useEffect(() => {
    if (!(chat.error instanceof TypeError)) return; // not a lost connection
    const retry = setTimeout(() => chat.resumeStream(), 1000);
    return () => clearTimeout(retry);
  }, [chat.error]);
  const send = (event) => (event.preventDefault(), chat.sendMessage({ text }), setText(""));
  const stop = () => fetch(`${api}/${id}/stop`, { method: "POST" });
  return (
    <form onSubmit={send}>
      {chat.messages.map(({ id, role, parts }) => (
        <div key={id} className={role}>
          {parts.map((part, index) =>
            part.type === "text" ? <p key={index}>{part.text}</p>
              : isToolUIPart(part) && <Call key={index} part={part} decide={chat.addToolApprovalResponse} />)}
        </div>
      ))}
      <output>{chat.error ? chat.error.message : chat.status}</output>
      <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
      <button disabled={chat.status !== "ready"}>Send</button>
      {chat.status !== "ready" && <button type="button" onClick={stop}>Stop</button>}
    </form>
  );
}

const before = await (await fetch(`${api}/${id}`)).json();
createRoot(document.getElementById("chat")).render(<Chat before={before} />);
