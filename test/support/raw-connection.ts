import { connect, type Socket } from 'node:net';
import { until } from './until.ts';

/** Turns header lines into Node's flat list of names and values. */
export function rawHeaders(...lines: readonly string[]): string[] {
  return lines.flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]);
}

/** A raw connection: the test sees every byte. */
export interface RawConnection {
  socket: Socket;
  /** The bytes received so far, as Latin-1. */
  received: string;
  isClosed: boolean;
  /** Sends text as Latin-1. */
  send(text: string): void;
  /** Sends the head of a request with these exact lines. */
  request(...lines: readonly string[]): void;
  /** Waits until this text has arrived. */
  receives(text: string | RegExp): Promise<string>;
  closed(): Promise<void>;
}

/** Opens a connection to a server on this machine. */
export function connectRaw(url: string): RawConnection {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).setEncoding('latin1');
  const raw: RawConnection = {
    socket,
    received: '',
    isClosed: false,
    send: (text) => void socket.write(text, 'latin1'),
    request: (...lines) => raw.send([...lines, '', ''].join('\r\n')),
    async receives(text) {
      const has = () => (typeof text === 'string' ? raw.received.includes(text) : text.test(raw.received));
      await until(() => has() || raw.isClosed);
      if (!has()) throw new Error(`The connection closed after: ${raw.received}`);
      return raw.received;
    },
    closed: () => until(() => raw.isClosed),
  };
  socket.on('data', (text: string) => (raw.received += text));
  socket.on('error', () => {});
  socket.on('close', () => (raw.isClosed = true));
  return raw;
}
