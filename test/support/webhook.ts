import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { until } from './until.ts';

/** A received message with a valid signature. */
export interface Received {
  id: string;
  type: string;
  timestamp: string;
  data: Record<string, unknown>;
  body: string;
  headers: IncomingMessage['headers'];
}

type Answer = (response: ServerResponse, received: Received) => void;

const receivers = new Set<Receiver>();

/** A secret in the format of Standard Webhooks. */
export function newNoticeSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** A webhook on loopback that verifies messages with the reference library of Standard Webhooks. */
export class Receiver {
  /** The messages with a valid signature, in the order of arrival. */
  readonly received: Received[] = [];
  /** How many messages had an invalid signature. */
  forged = 0;
  secret: string;
  /** Answers a message. Default: 204. */
  answer: Answer = (response) => void response.writeHead(204).end();
  readonly #server: Server;

  private constructor(server: Server, secret: string) {
    this.#server = server;
    this.secret = secret;
  }

  static async start(secret = newNoticeSecret(), port = 0): Promise<Receiver> {
    const server = createServer((request, response) => void receiver.#take(request, response));
    const receiver = new Receiver(server, secret);
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    receivers.add(receiver);
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hooks?token=t0ken`;
  }

  get types(): string[] {
    return this.received.map(({ type }) => type);
  }

  /** The messages of a type. */
  of(type: string): Received[] {
    return this.received.filter((each) => each.type === type);
  }

  async waitFor(count: number): Promise<void> {
    await until(() => this.received.length >= count);
  }

  async stop(): Promise<void> {
    receivers.delete(this);
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const { headers } = request;
    const id = String(headers['webhook-id']);
    try {
      new Webhook(this.secret).verify(body, headers as Record<string, string>);
    } catch {
      this.forged += 1;
      response.writeHead(401).end();
      return;
    }
    const received = { id, ...(JSON.parse(body) as Pick<Received, 'type' | 'timestamp' | 'data'>), body, headers };
    this.received.push(received);
    this.answer(response, received);
  }
}

/** Stops all receivers that tests have started. */
export async function stopReceivers(): Promise<void> {
  for (const receiver of receivers) await receiver.stop();
}
