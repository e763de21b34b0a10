import assert from 'node:assert/strict';
import { connect } from 'node:net';

export interface RawReply {
  status: number;
  headers: Headers;
  body: string;
}

/** The bytes of a POST to /graphql (HTTP/1.1). Headers are sent unchanged, including duplicates. */
export function rawPost(
  headers: readonly string[],
  body: string | Buffer = '',
  length = Buffer.byteLength(body),
): Buffer {
  const head = ['POST /graphql HTTP/1.1', 'Host: localhost', ...headers, `Content-Length: ${length}`, '', ''].join(
    '\r\n',
  );
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]);
}

/** Sends bytes over a new connection, and reads one reply, even if the request is incomplete. */
export function sendRaw(url: string, bytes: Buffer | string, { end = false } = {}): Promise<RawReply> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    let received = '';
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`The connection ended without a whole reply: ${received}`)));
    socket.setEncoding('utf8').on('data', (text: string) => {
      received += text;
      const reply = readReply(received, bytes.toString('latin1').startsWith('HEAD '));
      if (!reply) return;
      resolve(reply);
      socket.destroy();
    });
    socket.write(bytes);
    if (end) socket.end();
  });
}

/** Opens a connection, sends bytes and resets the connection. */
export function sendAndCut(url: string, bytes: Buffer | string): Promise<void> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname);
    socket.on('error', reject);
    socket.on('close', () => resolve());
    socket.write(bytes, () => socket.resetAndDestroy());
  });
}

function readReply(text: string, isHead: boolean): RawReply | undefined {
  const [, status, head = '', body = ''] = /^HTTP\/1\.1 (\d+) [^\r]*\r\n([^]*?)\r\n\r\n([^]*)$/.exec(text) ?? [];
  if (status === undefined) return undefined;
  const headers = new Headers(
    head
      .split('\r\n')
      .map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
  if (isHead) return { status: Number(status), headers, body };
  const length = headers.get('content-length');
  assert.notEqual(length, null, `A reply without Content-Length: ${text}`);
  return Buffer.byteLength(body) === Number(length) ? { status: Number(status), headers, body } : undefined;
}
