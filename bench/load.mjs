// Sends one request over and over on some connections, and counts the answers. Prints one JSON object.
import { connect } from 'node:net';

const [, , port, connections, seconds, requestText] = process.argv;
const request = Buffer.from(requestText, 'base64');
let answers = 0;
let wrong = 0;
let sample = '';

function open() {
  const socket = connect(Number(port), '127.0.0.1');
  socket.setNoDelay(true);
  let rest = '';
  socket.on('connect', () => socket.write(request));
  socket.on('data', (chunk) => {
    rest += chunk.toString('latin1');
    for (;;) {
      const head = rest.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = /content-length: (\d+)/i.exec(rest.slice(0, head))?.[1];
      const end = head + 4 + Number(length);
      if (rest.length < end) return;
      if (rest.startsWith('HTTP/1.1 200')) answers += 1;
      else wrong += 1;
      sample ||= rest.slice(head + 4, end);
      rest = rest.slice(end);
      socket.write(request);
    }
  });
  socket.on('error', () => (wrong += 1));
}
for (let index = 0; index < Number(connections); index += 1) open();
setTimeout(() => {
  answers = 0;
  const start = process.hrtime.bigint();
  setTimeout(
    () => {
      const elapsed = Number(process.hrtime.bigint() - start) / 1e9;
      process.stdout.write(`${JSON.stringify({ rate: answers / elapsed, wrong, sample })}\n`);
      process.exit(0);
    },
    Number(seconds) * 1000,
  );
}, 1000);
