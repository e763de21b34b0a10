import { randomBytes } from 'node:crypto';
import { basename } from 'node:path';
import type { NewKey } from '../../keys/key/api-key.ts';
import { type Issue, NameTakenError, assertValid } from '../../keys/errors.ts';
import { printable } from '../../keys/text.ts';
import { validateNewKey } from '../../keys/key/validation.ts';
import { warningsOf } from '../../keys/changes/confusable-names.ts';
import { warn } from '../terminal.ts';
import { type KeysPlace, withAdministration } from '../with-keys.ts';

/** What the flags say about a temporary key. */
export interface TemporaryKeyRequest extends Pick<NewKey, 'roles' | 'permissions'> {
  name?: string | undefined;
  /** How long the key lives where nobody deletes it: a duration such as `10m`. */
  ttl: string;
  /** The command that it is for, as typed. Its arguments, which may be secret, are not wanted here. */
  command: string;
}

/** A key for as long as one command runs. */
export interface TemporaryKey {
  secret: string;
  name: string;
  expiresAt: number | null;
  /** Deletes it, and the keys that it created; one that is gone already is fine. @throws KeysError STORE_… */
  remove: () => Promise<void>;
}

export interface TemporaryKeyOptions {
  request: TemporaryKeyRequest;
  place: KeysPlace;
  /** What else is wrong with the flags: all issues are reported together. */
  issues: readonly Issue[];
  /** Shows a line to the user. */
  note: (text: string) => Promise<void>;
}

/**
 * Creates a temporary key. The store is open for this moment only, and for that of its removal.
 * @throws ValidationError with all issues; NameTakenError; KeysError STORE_…
 */
export async function createTemporaryKey({ request, place, issues, note }: TemporaryKeyOptions): Promise<TemporaryKey> {
  const { roles, permissions, ttl, command, name } = request;
  const input: NewKey = {
    name: name ?? temporaryName(new Date()),
    description: `Temporary, for the command "${printable(basename(command))}". Deleted when it ends.`,
    roles,
    permissions,
    expiresIn: ttl,
  };
  const grants = permissions ?? [];
  assertValid([...issues, ...validateNewKey(input, await place.catalog(grants), Date.now())]);

  const created = await withAdministration(place, { ifMissing: 'create', grants }, (keys) => keys.create(input)).catch(
    (error) => {
      // Nothing is replaced here: a command must not delete a key that happens to have the same name.
      throw error instanceof NameTakenError ? new NameTakenError(input.name, false) : error;
    },
  );
  await warn({ note }, warningsOf(created.confusable));
  const { id, name: given, expiresAt } = created.apiKey;
  return {
    secret: created.key,
    name: given,
    expiresAt,
    // By id, since another key may have got the name meanwhile. A store that is gone is not created again.
    remove: () =>
      withAdministration(place, { ifMissing: 'fail', grants: 'none' }, async (keys) => void (await keys.delete([id]))),
  };
}

/** Tells when it was made, and two of one second apart: `exec 20261121 103000 ab12cd`. */
function temporaryName(now: Date): string {
  const [day, time] = now
    .toISOString()
    .replaceAll(/[-:]|\..*/g, '')
    .split('T');
  return `exec ${day} ${time} ${randomBytes(3).toString('hex')}`;
}
