import { Agent, request } from 'node:http';

/** The results of the requests of a load. */
export interface Load {
  /** How many were answered, by status. */
  readonly statuses: Map<number, number>;
  /** The codes of the errors of those that were not answered. */
  readonly errors: Map<string, number>;
  /** How many of these were sent on a connection that was kept. */
  dropped(): number;
  /** How many answers said that they were the last of their connection. */
  last(): number;
  /** Ends it, and waits for the answers that are missing. */
  stop(): Promise<void>;
}

/** Sends one request after another from some clients, each on a connection that it keeps, or on a new one each time. */
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
        // A server that is gone has no answer in the same turn.
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
