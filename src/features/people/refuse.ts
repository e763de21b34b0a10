import { KeysError, printable } from '../../keys/basics/index.ts';
import type { ApiKey } from '../../keys/key/index.ts';
import type { Person } from './identity.ts';

/** The issuer of keys that stand for rules of token exchange. No provider or header has this name. */
export const FEDERATION = 'federation';
/** The fields that are those of the latest sign-in. */
const SIGNED_IN: ReadonlySet<string> = new Set(['name', 'roles', 'permissions']);
const BY_SIGN_IN = 'Their name and grants are set when they sign in, by "people" in svc-api.yaml.';
const NO_SECRET = 'A person has no secret, and cannot be replaced by another key.';
const BY_HEADER = 'header:';

/**
 * Refuses changes that only keys with a secret can have: NOT_FOR_PEOPLE.
 * @param fields that change; left out for another secret, or another key in its place
 */
export function refusePeople(
  { name, person }: Pick<ApiKey, 'name' | 'person'>,
  fields?: readonly string[],
): KeysError | undefined {
  if (!person || fields?.some((field) => SIGNED_IN.has(field)) === false) return undefined;
  const what =
    person.issuer === FEDERATION
      ? 'stands for a rule of "federation" in svc-api.yaml, which decides that.'
      : `is a person who signs in at ${hostOf(person)}. ${fields ? BY_SIGN_IN : NO_SECRET}`;
  return new KeysError('NOT_FOR_PEOPLE', `"${printable(name)}" ${what}`);
}

/** A short name for the place where a person signs in. */
function hostOf({ issuer }: Pick<Person, 'issuer'>): string {
  if (issuer.startsWith(BY_HEADER)) return `a proxy (${issuer.slice(BY_HEADER.length)})`;
  return URL.canParse(issuer) ? new URL(issuer).host : issuer;
}

/** The issuer of people named by a proxy in a header. @param header its name, in any case */
export function headerIssuer(header: string): string {
  return BY_HEADER + header.toLowerCase();
}
