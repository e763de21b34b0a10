import { Agent, request } from 'node:http';

/** The outcome of a load. */
export interface Load {
  /** The number of answers, by status. */
  readonly statuses: Map<number, number>;
  /** The number of failed requests, by error code. */
  readonly errors: Map<string, number>;
  /** How many of the failed requests were sent on a kept connection. */
  dropped(): number;
  /** How many answers closed their connection. */
  last(): number;
  /** Stops the load, and waits for pending answers. */
  stop(): Promise<void>;
}

/** Sends requests from several clients, on keep-alive connections or a new connection for each request. */
export function startLoad(url: string, key: string, { kept = 0, fresh = 0 }: { kept?: number; fresh?: number }): Load {
  const [statuses, errors] = [new Map<number, number>(), new Map<string, number>()];
  const state = { isOver: false };
  let [last, dropped] = [0, 0];
  const body = '{"query":"{ me { name } }"}';
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const ask = (agent: Agent, keepAlive: boolean) =>
    new Promise<void>((resolve) => {
      const asked = request(`${url}/graphql`, { method: 'POST', agent, headers }, (answer) => {
        const { statusCode: status = 0 } = answer;
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (keepAlive && answer.headers.connection === 'close') last += 1;
        answer.resume().once('close', resolve);
      });
      asked.once('error', ({ code = 'unknown' }: NodeJS.ErrnoException) => {
        errors.set(code, (errors.get(code) ?? 0) + 1);
        if (asked.reusedSocket) dropped += 1;
        // Without this, failures from a server that is gone would never leave the turn of the event loop.
        setImmediate(resolve);
      });
      asked.end(body);
    });
  const run = async (keepAlive: boolean) => {
    const agent = new Agent({ keepAlive, maxSockets: 1 });
    while (!state.isOver) await ask(agent, keepAlive);
    agent.destroy();
  };
  const clients = [
    ...Array.from({ length: kept }, () => run(true)),
    ...Array.from({ length: fresh }, () => run(false)),
  ];
  return {
    statuses,
    errors,
    dropped: () => dropped,
    last: () => last,
    async stop() {
      state.isOver = true;
      await Promise.all(clients);
    },
  };
}
