import { openKeys } from 'svc-api';
import type { CheckedRequest, CheckRequestOptions, Permission, PlainRequest, Principal, RefusedRequest } from 'svc-api';

const keys = await openKeys();
const permission: Permission = 'DOCKER:READ_ANY';

/** Answers a request of the Fetch standard. Only who has accepted the connection knows the client's address. */
export async function handle(request: Request, address: string): Promise<Response> {
  const options: CheckRequestOptions = {
    permission,
    address,
    onRefused: ({ code, message }) => ({ error: { code, message } }),
  };
  const checked: CheckedRequest = await keys.check(request, options);
  if (!checked.ok) return checked.response();
  return Response.json(describe(checked.principal), { headers: checked.headers });
}

function describe(principal: Principal): object {
  return {
    name: principal.apiKey.name,
    owner: principal.owner,
    canRestart: principal.can('DOCKER:UPDATE_ANY'),
    mayDo: principal.permissions().length,
  };
}

/** Whether a message of any other protocol may be worked on. It comes with a key, from an address. */
export async function isAllowed(message: { key: string; from: string; deletes: boolean }): Promise<boolean> {
  const request: PlainRequest = {
    secret: message.key,
    address: message.from,
    method: message.deletes ? 'DELETE' : 'GET',
  };
  // By GET, DOCKER:READ_ANY; by POST, DOCKER:CREATE_ANY; by PUT or PATCH, DOCKER:UPDATE_ANY; by DELETE, DOCKER:DELETE_ANY.
  const checked = await keys.check(request, { resource: 'DOCKER' });
  if (!checked.ok) report(checked);
  return checked.ok;
}

function report({ status, code, message }: RefusedRequest): void {
  console.error(`${status} ${code}: ${message}`);
}
