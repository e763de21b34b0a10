import { openKeys } from 'svc-api';
import type { CheckedRequest, CheckRequestOptions, Permission, PlainRequest, Principal, RefusedRequest } from 'svc-api';

const keys = await openKeys();
const permission: Permission = 'SERVICES:READ_ANY';

/**
 * Answers a request of the Fetch standard. The client's address must come from the server that accepted the connection.
 */
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
    owner: principal.apiKey.owner,
    canRestart: principal.can('SERVICES:UPDATE_ANY'),
    mayDo: principal.permissions().length,
  };
}

/** True if a message of any other protocol is allowed. It comes with a key, from an address. */
export async function isAllowed(message: { key: string; from: string; deletes: boolean }): Promise<boolean> {
  const request: PlainRequest = {
    secret: message.key,
    address: message.from,
    method: message.deletes ? 'DELETE' : 'GET',
  };
  // GET needs SERVICES:READ_ANY; POST, SERVICES:CREATE_ANY; PUT or PATCH, SERVICES:UPDATE_ANY; DELETE, SERVICES:DELETE_ANY.
  const checked = await keys.check(request, { resource: 'SERVICES' });
  if (!checked.ok) report(checked);
  return checked.ok;
}

function report({ status, code, message }: RefusedRequest): void {
  console.error(`${status} ${code}: ${message}`);
}
