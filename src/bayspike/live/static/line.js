// The one WebSocket: it comes back by itself, and this page keeps its name over a reload.
let client = null;
try { client = sessionStorage.getItem("bayspike-client"); } catch { /* no storage: a name for this time only */ }
if (!client) {
  client = [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
  try { sessionStorage.setItem("bayspike-client", client); } catch { /* as above */ }
}

export class Connection {
  constructor(onMessage, onLost) {
    this.onMessage = onMessage;
    this.onLost = onLost;
    this.wait = 300;
    this.open();
  }
  open() {
    const address = new URL(`ws?client=${client}`, document.baseURI);
    address.protocol = "ws:";
    this.socket = new WebSocket(address);
    this.socket.addEventListener("open", () => { this.wait = 300; });
    this.socket.addEventListener("message", (event) => this.onMessage(JSON.parse(event.data)));
    this.socket.addEventListener("close", () => {
      this.onLost();
      setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(5000, 2 * this.wait);
    });
  }
  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
  // A file goes by itself, not through the socket; the answer is one sentence.
  async drop(file) {
    const address = new URL(`drop?name=${encodeURIComponent(file.name)}`, document.baseURI);
    const answer = await fetch(address, { method: "POST", body: file, headers: { "x-client": client } });
    return { good: answer.ok, text: await answer.text() };
  }
}
