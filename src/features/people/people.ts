import { isWidened, OPERATOR } from '../../keys/authorization/index.ts';
import { isLoopbackHost, printable } from '../../keys/basics/index.ts';
import type { Parts, Transaction } from '../../keys/changes/index.ts';
import {
  type ApiKey,
  BARE_KEY,
  identityFields,
  requireWhole,
  type StoredKey,
  withoutDigests,
} from '../../keys/key/index.ts';
import type { Grant, Permission, Role } from '../../keys/permissions/index.ts';
import { createSecretlessId } from '../../keys/secret/index.ts';
import { freeName } from './free-name.ts';
import type { Person } from './identity.ts';

export type { Person } from './identity.ts';

/** Grants of people by group; `*` is everyone who signs in. */
export type GrantsByGroup = Readonly<Record<string, readonly Grant[]>>;

/** A proxy that signs people in, and says in headers who they are. Names of headers are in lower case. */
export interface SignInProxy {
  readonly header: string;
  /** The header with their groups, between commas; undefined if it says none. */
  readonly groups: string | undefined;
}

/** A provider of OpenID Connect that signs people in. */
export interface SignInProvider {
  /** Its URL, as it says it itself. */
  readonly issuer: string;
  readonly clientId: string;
  /** The absolute path of the file with the secret of the client. */
  readonly secretFile: string;
  /** The claim with their groups. */
  readonly groups: string;
}

/** How people sign in, and their grants. */
export interface PeopleSettings {
  readonly by: SignInProxy | SignInProvider;
  readonly grant: GrantsByGroup;
}

/** Finds the problem of a provider's URL, if any. */
export function invalidProvider(text: string): string | undefined {
  const shown = `"${printable(text)}" is not an issuer.`;
  if (!URL.canParse(text) || text !== text.trim() || text.length > MAX_ISSUER_LENGTH)
    return `${shown} Write it as the provider does, such as https://id.example.org.`;
  const { protocol, hostname, username, password, search, hash } = new URL(text);
  const isLocal = protocol === 'http:' && isLoopbackHost(hostname);
  if (protocol !== 'https:' && !isLocal)
    return `${shown} It must begin with https://, or with http:// on loopback, such as http://127.0.0.1:8080.`;
  const hasMore = username !== '' || password !== '' || search !== '' || hash !== '' || /[?#]/.test(text);
  return hasMore ? `${shown} It has no user name, no query and no fragment.` : undefined;
}

const MAX_ISSUER_LENGTH = 255;

/** The value that finds the key of a person, in place of the digest of a secret. */
export function digestPerson(person: Pick<Person, 'issuer' | 'subject'>): string {
  return identityFields.person.digest(person);
}

type Grants = Pick<ApiKey, 'roles' | 'permissions'>;

/** Grants of a person by their groups, in the order of the configuration. */
export function grantsOf(byGroup: GrantsByGroup, groups: readonly string[]): Grants {
  const isIn = new Set(['*', ...groups]);
  const granted = new Set(Object.entries(byGroup).flatMap(([group, grants]) => (isIn.has(group) ? grants : [])));
  const isPermission = (grant: Grant): grant is Permission => grant.includes(':');
  return {
    roles: [...granted].filter((grant): grant is Role => !isPermission(grant)),
    permissions: [...granted].filter(isPermission),
  };
}

/** A signed-in person: a key without a secret, and the value that finds it instead of a digest. */
export interface SignedIn {
  readonly apiKey: ApiKey;
  readonly digest: string;
}

/**
 * People who sign in elsewhere. Each is a key without a secret, with the grants of their latest sign-in: if they lose
 * some, so do the keys that they created.
 */
export class People {
  readonly #options: Parts;

  constructor(options: Parts) {
    this.#options = options;
  }

  /**
   * Creates the key of a person who signs in, or updates its grants.
   * @param person as verified by a provider or a proxy
   * @param field of the configuration with their grants, for the audit log
   * @param beforeCreate called before a new person is created; it can refuse by throwing
   * @returns undefined if they have no grants; `Authenticator` decides whether the key is accepted
   * @throws KeysError STORE_…
   */
  async signIn(
    person: Person,
    grants: Grants,
    { field = 'people', beforeCreate }: { field?: string; beforeCreate?: () => void } = {},
  ): Promise<SignedIn | undefined> {
    const { repository, transactions, catalog } = this.#options;
    const digest = digestPerson(person);
    const found = (await repository.findByDigest(digest))?.key;
    const signedIn = (apiKey: ApiKey) => (isNothing(grants) ? undefined : { apiKey, digest });
    if (found ? isUpToDate(found, person, grants) : isNothing(grants)) return found && signedIn(found);
    if (!found) beforeCreate?.();
    const revokes = found !== undefined && !isWidened(found, { ...found, ...grants }, catalog);
    const key = await transactions.run(OPERATOR, (transaction) => this.#update(transaction, person, grants), {
      revokes,
      auditActor: { kind: 'POLICY', id: null, name: field },
    });
    return key && signedIn(key);
  }

  async #update(transaction: Transaction, person: Person, grants: Grants): Promise<ApiKey | undefined> {
    const digest = digestPerson(person);
    const [before] = await transaction.find.findByDigests([digest]);
    if (!before) {
      if (isNothing(grants)) return undefined;
      const key = await this.#create(transaction, person, grants);
      await transaction.insert([key]);
      return withoutDigests(key);
    }
    requireWhole(before);
    const after = { ...before, ...grants, person };
    await transaction.change(before, after, 'UPDATE');
    return withoutDigests(after);
  }

  async #create(transaction: Transaction, person: Person, grants: Grants): Promise<StoredKey> {
    const { randomId, randomBytes } = this.#options;
    return {
      ...BARE_KEY,
      id: randomId(),
      name: await freeName(transaction.find, person.name, { otherwise: 'Person', randomBytes }),
      ...grants,
      publicId: createSecretlessId(randomBytes),
      createdAt: transaction.now,
      person,
      digest: digestPerson(person),
    };
  }
}

function isNothing({ roles, permissions }: Grants): boolean {
  return roles.length + permissions.length === 0;
}

function isUpToDate(key: ApiKey, person: Person, grants: Grants): boolean {
  const state = ({ roles, permissions }: Grants, of: Person | null) =>
    JSON.stringify([roles, permissions, of?.issuer, of?.subject, of?.name]);
  return state(key, key.person) === state(grants, person);
}
