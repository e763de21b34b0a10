import assert from 'node:assert/strict';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { NUMBER, TOKEN } from './placeholders.ts';
import type { StartedServer } from './processes.ts';
import { requestOf } from './requests.ts';
import type { Row } from './rows.ts';
import type { BenchKey } from './stores.ts';
import type { Workload } from './workloads.ts';

/** How many keys are checked. */
const TRIED = 32;
let nextNumber = 2 * 10 ** 9;

/**
 * Checks that the responses are right, also to repeated requests, and that a wrong key is refused.
 * @throws AssertionError
 */
export async function checkAnswers(
  { title, isOpen }: Row,
  { port }: StartedServer,
  workload: Workload,
  keys: readonly BenchKey[],
): Promise<void> {
  const tried = keys.slice(0, TRIED);
  for (const key of [...tried, ...tried]) {
    nextNumber += 1;
    const number = String(nextNumber);
    const [status, answer] = await ask(workload, port, { secret: key.secret, number });
    assert.ok((workload.statuses ?? [200]).includes(status), `${title} answers ${status}: ${answer}`);
    if (!workload.expected) continue;
    assert.deepEqual(
      withoutMessages(JSON.parse(answer) as Answer),
      workload.expected(isOpen ? keys[0]! : key, number),
      `${title} answers something else`,
    );
  }
  if (isOpen || workload.token !== undefined) return;
  const secret = keys[0]!.secret.replace(/.{8}$/, 'zzzzzzzz');
  const [status] = await ask(workload, port, { secret, number: NUMBER });
  assert.equal(status, 401, `${title} does not refuse a wrong key`);
}

interface Answer {
  errors?: { path: unknown; extensions: { code: unknown } }[];
}

function withoutMessages(answer: Answer): object {
  if (!answer.errors) return answer;
  return { ...answer, errors: answer.errors.map(({ path, extensions }) => ({ path, code: extensions.code })) };
}

/** Sends a request like the load generator's. @returns the status and the body of the response */
async function ask(
  workload: Workload,
  port: number,
  { secret, number }: { secret: string; number: string },
): Promise<[status: number, body: string]> {
  const [head, body] = requestOf(workload, port).replace(TOKEN, secret).replaceAll(NUMBER, number).split('\r\n\r\n');
  const [first, ...lines] = head!.split('\r\n');
  const [method, path] = first!.split(' ');
  const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/, 2) as [string, string]));
  const outgoing = request({ host: '127.0.0.1', port, method, path, headers }).end(body);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return [response.statusCode!, (await text(response)) || JSON.stringify(identityIn(response.headers))];
}

/** The key of a request, as forward-auth reports it to the proxy. */
function identityIn(headers: IncomingHttpHeaders): object {
  const [id, name, roles, permission] = ['key-id', 'key-name', 'roles', 'permission'].map((field) =>
    String(headers[`x-auth-${field}`]),
  );
  return { id, name, roles: roles!.split(','), permission };
}
