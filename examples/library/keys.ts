import { isKeysError, type KeysError, OPERATOR, openKeys } from 'svc-api';
import type { Actor, ApiKey, CheckedRequest, CreatedKey, KeyChange, NewKey, OpenKeys, OpenKeysOptions } from 'svc-api';
import type { Page, PageQuery, RotatedKey, RotationRequest } from 'svc-api';

// Permissions on the program's own resources can be granted to keys.
const options: OpenKeysOptions = { resources: ['INVOICE'], ifMissing: 'create' };
const keys: OpenKeys = await openKeys(options);

// The program itself is the actor, and is allowed everything. For the key of a request, pass the principal of that
// request.
const actor: Actor = OPERATOR;

const input: NewKey = { name: 'Invoices', permissions: ['INVOICE:READ_ANY'], expiresIn: '90d', overwrite: true };
const { key: secret, apiKey }: CreatedKey = await keys.create(input, { actor });
console.log(`The key of ${apiKey.name} has ${secret.length} characters. You see it only here.`);

const change: KeyChange = { limits: ['100/m'], description: null };
const { before, after } = await keys.update(apiKey.id, change, { actor });
console.log(`Limits: ${before.limits.join()} -> ${after.limits.join()}`);

// The previous secret works for another hour. finishRotation revokes it; rollBackRotation revokes the new one.
const request: RotationRequest = { grace: '1h' };
const rotated: RotatedKey = await keys.rotate(apiKey.id, request, { actor });
console.log(`A new secret: ${rotated.key !== secret}`);
await keys.finishRotation(apiKey.id, { actor });

const query: PageQuery = { search: 'invoice', first: 10 };
const page: Page = await keys.list(query, { actor });
const names = page.keys.map(({ name }: ApiKey) => name);
console.log(`Found: ${names.join()}`);
if (page.hasNextPage) await keys.list({ ...query, after: page.endCursor }, { actor });

const describe = ({ code, message }: KeysError) => `${code}: ${message}`;
try {
  await keys.create({ name: 'Nothing granted' }, { actor });
} catch (error) {
  if (!isKeysError(error)) throw error;
  console.log(describe(error));
}

// Finds a key by its id or name; undefined if there is none that the actor can read.
const found: ApiKey | undefined = await keys.get('Invoices', { actor });
if (found) await keys.disable(found.id, { actor });

// Refused, because the key is disabled.
const checked: CheckedRequest = await keys.verify(rotated.key, { permission: 'INVOICE:READ_ANY' });
console.log(checked.ok ? 'Accepted' : checked.message);
await keys.delete(apiKey.id, { actor });
await keys.close();
