import { freeName } from '../people/free-name.ts';
import { People } from '../people/people.ts';
import { FEDERATION } from '../people/refuse.ts';
import { chainExpiry, heldGrants, OPERATOR, type Principal, requireToGrant } from '../../keys/authorization/index.ts';
import { assertValid, formatTime, type Issue, printable } from '../../keys/basics/index.ts';
import {
  buildKey,
  createKey,
  findConfusableNames,
  type NewSecret,
  type Parts,
  refreshed,
  type Transaction,
} from '../../keys/changes/index.ts';
import {
  type ApiKey,
  type NewKey,
  statusOf,
  type StoredKey,
  validateNewKey,
  withoutDigests,
} from '../../keys/key/index.ts';
import { splitPermission } from '../../keys/permissions/index.ts';
import { CONSENTS } from '../consent/consent-request.ts';
import { type Grants, USED_TOKENS } from '../../keys/repository/index.ts';
import { createSecret, type Secret } from '../../keys/secret/index.ts';
import type { FeatureParts } from '../../keys/service/index.ts';
import { personOf } from './federation-rule.ts';
import { type IdentifiedToken, TokenRefused } from './identified-token.ts';
import { IssuerKeys } from './issuer-keys.ts';

/** Default lifetime of a key issued for another key, in seconds. */
const USUAL_SECONDS = 600;
/** Maximum lifetime of an issued key, in seconds. */
export const MAX_EXCHANGED_SECONDS = 86_400;
/** Maximum number of expired keys of a rule to delete when issuing a new one. */
const MAX_SWEPT = 20;

/** The key requested in an exchange. */
export interface WantedKey {
  /** Default: that of the key it descends from, with something random behind it. */
  readonly name: string | undefined;
  /** Default: all that it can be given. */
  readonly grants: Grants | undefined;
  /** Requested lifetime in seconds, as given. Default: 600 for a key, or the one of the rule. */
  readonly expiresIn: string | undefined;
  /** The only address it is to be valid for, within those of its parent keys: see `ApiKey.audience`. */
  readonly audience: string | undefined;
  /** The application that can revoke it. */
  readonly clientId: string;
}

/** Gives keys for something else that proves who asks (RFC 8693, RFC 7523). */
export class Exchange {
  readonly #options: Parts;
  readonly #people: People;
  /** The public keys of issuers, which all services over the same store share. */
  readonly issuerKeys: IssuerKeys;

  constructor(options: Parts & Pick<FeatureParts, 'shared'>) {
    this.#options = options;
    this.issuerKeys = options.shared(IssuerKeys);
    this.#people = new People(options);
  }

  /**
   * Issues a short-lived child key to the holder of a key, by the rules for creating one.
   * @throws what `KeyManagement.create` throws; ValidationError for a lifetime outside 1 second to 1 day
   */
  async delegate(principal: Principal, wanted: WantedKey): Promise<NewSecret> {
    const { transactions, clock } = this.#options;
    const now = clock();
    const seconds = readSeconds(wanted.expiresIn, { usual: USUAL_SECONDS, most: MAX_EXCHANGED_SECONDS });
    const latest = wanted.expiresIn === undefined ? chainExpiry(principal.chain) : null;
    const end = Math.min(now + seconds * 1000, latest ?? Infinity);
    const built = await this.#build(wanted, { parent: principal.apiKey, grants: usableGrants(principal), now, end });
    return transactions.run(principal, (transaction) => give(transaction, built, wanted), { now });
  }

  /**
   * Issues a key for a token by the rule it meets: a child key of the one that stands for the rule.
   * @param address of the client, for the audit log
   * @returns also the key of the rule
   * @throws TokenRefused for a used token; ValidationError; ForbiddenError for more than the rule grants, or if its key
   * is disabled; KeysError STORE_…, POLICY_VIOLATED, NAME_CONFUSABLE
   */
  async federate(
    { rule, subject, id, digest, endsAt }: IdentifiedToken,
    wanted: WantedKey,
    address: string | undefined,
  ): Promise<NewSecret & { readonly principal: Principal }> {
    const { repository, transactions, catalog, clock } = this.#options;
    const signedIn = await this.#people.signIn(personOf(rule), rule.grants, { field: FEDERATION });
    if (!signedIn) throw new TokenRefused('The rule for this token has no grants.');
    const { apiKey: parent } = signedIn;
    const now = clock();
    const end = now + readSeconds(wanted.expiresIn, { usual: rule.ttl, most: rule.ttl }) * 1000;
    const built = await this.#build(wanted, { parent, grants: rule.grants, now, end });
    built.key.createdBy = parent.id;
    const oldestIds = (await repository.listCreatedBy([parent.id], { limit: MAX_SWEPT })).map(({ id }) => id);
    const auditActor = { kind: 'KEY', id: parent.id, name: parent.name } as const;
    const work = async (transaction: Transaction) => {
      const principal = await refreshed({ apiKey: parent, secret: 'current' }, transaction.find, { catalog, now });
      requireToGrant(principal, built.key, catalog);
      await findConfusableNames(principal, transaction.find, [built.key.name]);
      if (!rule.reuse && !(await transaction.port(USED_TOKENS).use(digest, endsAt, now))) return undefined;
      await sweep(transaction, oldestIds);
      const given = await give(transaction, built, wanted);
      const after = { rule: rule.name, issuer: rule.issuer.url, subject: printable(subject, 255), token: id };
      transaction.note({ action: 'FEDERATE', key: given.apiKey, after, address });
      return { ...given, principal };
    };
    const given = await transactions.run(OPERATOR, work, { now, auditActor });
    if (!given) throw new TokenRefused('The token was used before. Get a new one, or add "reuse: true" to the rule.');
    return given;
  }

  async #build(
    { name, grants: asked, audience }: WantedKey,
    { parent, grants, now, end }: { parent: ApiKey; grants: Grants; now: number; end: number },
  ): Promise<BuiltKey> {
    const { catalog, randomBytes, randomId, repository } = this.#options;
    const naming = { otherwise: 'Key', isMarked: true, randomBytes };
    const input: NewKey = {
      name: name ?? (await freeName(repository, parent.name, naming)),
      ...(asked ?? grants),
      expiresAt: formatTime(end),
    };
    assertValid(validateNewKey(input, catalog, now));
    const secret = createSecret(randomBytes, catalog.prefix);
    return { input, secret, key: buildKey(input, { catalog, now, id: randomId(), secret, audience }) };
  }
}

interface BuiltKey {
  readonly input: NewKey;
  readonly key: StoredKey;
  readonly secret: Secret;
}

async function give(
  transaction: Transaction,
  { input, key: built, secret }: BuiltKey,
  { clientId }: WantedKey,
): Promise<NewSecret> {
  const { key } = await createKey(transaction, input, built);
  await transaction.port(CONSENTS).rememberClient(key.id, { clientId });
  return { key: secret.text, apiKey: withoutDigests(key) };
}

/** Deletes the oldest keys of a rule that have ended, so that they do not become ever more. */
async function sweep(transaction: Transaction, oldestIds: readonly string[]): Promise<void> {
  const oldest = await transaction.find.findBy('id', oldestIds);
  const ended = oldest.filter((key) => statusOf(key, transaction.now) === 'EXPIRED').map(({ id }) => id);
  if (ended.length > 0) await transaction.delete(await transaction.find.findWithDescendants(ended));
}

/** Grants of a key that its parent keys allow. */
function usableGrants(principal: Principal): Grants {
  const { apiKey, access, catalog } = principal;
  const held = heldGrants(principal, catalog).roles;
  return {
    roles: apiKey.roles.filter((role) => held.includes(role)),
    permissions: apiKey.permissions.filter((permission) => access.has(...splitPermission(permission))),
  };
}

/** @throws ValidationError */
function readSeconds(text: string | undefined, { usual, most }: { usual: number; most: number }): number {
  if (text === undefined) return usual;
  const seconds = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : Infinity;
  const issue: Issue = {
    code: 'EXPIRY_INVALID',
    message: `"${printable(text)}" is not a valid lifetime: give 1 to ${most} seconds.`,
  };
  assertValid(seconds > most ? [issue] : []);
  return seconds;
}
