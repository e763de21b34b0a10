import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A keep-alive connection. It sends bytes and reads the status of each reply. */
export class KeptConnection {
  readonly #socket: Socket;
  readonly #statuses: number[] = [];
  readonly #waiting: ((status: number) => void)[] = [];
  #isClosed = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#isClosed = true;
      for (const next of this.#waiting.splice(0)) next(0);
    });
    socket.setEncoding('latin1').on('data', (text: string) => {
      for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
        const next = this.#waiting.shift();
        if (next) next(Number(status));
        else this.#statuses.push(Number(status));
      }
    });
  }

  static async open(url: string): Promise<KeptConnection> {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, 'connect');
    return new KeptConnection(socket);
  }

  send(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  /** The status of the next reply; 0 if the connection closed without one. */
  status(): Promise<number> {
    const status = this.#statuses.shift() ?? (this.#isClosed ? 0 : undefined);
    return status === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(status);
  }

  close(): void {
    this.#socket.destroy();
  }
}
