import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import { warn } from '../../../cli/terminal.ts';
import { type KeysPlace, withAdministration } from '../../../cli/with-keys.ts';
import { assertValid, type Issue, NameTakenError, printable } from '../../../keys/basics/index.ts';
import { warningsOf } from '../../../keys/changes/index.ts';
import { type NewKey, validateNewKey } from '../../../keys/key/index.ts';
import type { Suggestion } from '../../usage/suggest.ts';
import { learnUse } from './learned-use.ts';

/** The flags for a temporary key. */
export interface TemporaryKeyRequest extends Pick<NewKey, 'roles' | 'permissions' | 'limits'> {
  name?: string | undefined;
  /** The lifetime of the key if it is not deleted earlier: a duration such as `10m`; undefined for the default. */
  ttl: string | undefined;
  /** The command, as typed, without its arguments, which may be secret. */
  command: string;
}

/** A key for the run time of one command. */
export interface TemporaryKey {
  secret: string;
  name: string;
  expiresAt: number | null;
  /** Deletes it and its child keys; it may be deleted already. @throws KeysError STORE_… */
  remove: () => Promise<void>;
  /** The fewest grants for its use, once servers have written that; undefined if it was not used. */
  learn?: (wait: (ms: number) => Promise<unknown>) => Promise<Suggestion | undefined>;
}

interface TemporaryKeyOptions {
  request: TemporaryKeyRequest;
  place: KeysPlace;
  /** Further problems with the flags, so that all issues are reported together. */
  issues: readonly Issue[];
  /** Shows a line to the user. */
  note: (text: string) => Promise<void>;
}

/**
 * Creates a temporary key. The store is open only for the creation and for the removal.
 * @throws ValidationError with all issues; NameTakenError; KeysError STORE_…
 */
export async function createTemporaryKey({ request, place, issues, note }: TemporaryKeyOptions): Promise<TemporaryKey> {
  const { roles, permissions, limits, ttl = '10m', command, name } = request;
  const input: NewKey = {
    name: name ?? temporaryName(new Date()),
    description: `Temporary, for the command "${printable(basename(command))}". Deleted when it ends.`,
    roles,
    limits,
    permissions,
    expiresIn: ttl,
  };
  const grants = permissions ?? [];
  assertValid([...issues, ...validateNewKey(input, await place.catalog(grants), Date.now())]);

  const created = await withAdministration(place, { ifMissing: 'create', grants }, (keys) =>
    keys.createApiKey({ input }),
  ).catch((error) => {
    // Nothing is replaced here: a command must not delete a key that happens to have the same name.
    throw error instanceof NameTakenError ? new NameTakenError(input.name, false) : error;
  });
  await warn({ note }, warningsOf(created.confusable));
  const { id, name: given, expiresAt } = created.apiKey;
  return {
    secret: created.key,
    name: given,
    expiresAt,
    // By id, since another key may have the name by now. A deleted store is not created again.
    remove: () =>
      withAdministration(
        place,
        { ifMissing: 'fail', grants: 'none' },
        async (keys) => void (await keys.deleteApiKeys({ ids: [id] })),
      ),
    learn: (wait) =>
      withAdministration(place, { ifMissing: 'fail' }, (keys) => learnUse(keys, { id, name: given }, wait)),
  };
}

/** Includes the time, and a random part for several in one second: `exec 20261121 103000 ab12cd`. */
function temporaryName(now: Date): string {
  const [day, time] = now
    .toISOString()
    .replaceAll(/[-:]|\..*/g, '')
    .split('T');
  return `exec ${day} ${time} ${randomBytes(3).toString('hex')}`;
}
